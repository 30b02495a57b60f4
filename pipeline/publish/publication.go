package publish

import "github.com/tracesmith/tracesmith/pipeline/selection"

// publication is one call of Publish: its inputs, and its progress.
type publication struct {
	cfg      Config
	in       *inputs
	sel      selection.Result
	version  string
	latest   []byte // latest.json when this publisher got the lease; nil: none
	scratch  string
	uploaded int
	copied   int
	prior    map[string]string // SHA-256 of the latest version's files -> key
}

// key returns the key of a file of the version in the store.
func (p *publication) key(rel string) string { return keyBelow(versionBase(p.version), rel) }
