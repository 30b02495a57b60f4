package publish

import "github.com/tracesmith/tracesmith/pipeline/selection"

// publication is the state of one call of Publish.
type publication struct {
	cfg      Config
	in       *inputs
	sel      selection.Result
	version  string
	latest   []byte // content of latest.json when this publisher got the lease; nil if there was none
	scratch  string
	uploaded int               // number of files
	copied   int               // number of files
	prior    map[string]string // files of the latest version: SHA-256 -> key
}

// key returns the key of a file of the version in the store.
func (p *publication) key(rel string) string { return keyBelow(versionBase(p.version), rel) }
