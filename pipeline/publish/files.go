package publish

import (
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks/shard"
)

// builtFile is a finished local file of a table, with its manifest entry.
type builtFile struct {
	local string
	entry schemas.ManifestFile
}

func newBuiltFile(table, rel string, s shard.Shard) builtFile {
	f := builtFile{local: s.Path, entry: schemas.ManifestFile{
		Path: rel, Table: table, Split: s.Split, Rows: s.Rows, Bytes: s.Bytes,
		Uncompressed: s.Uncompressed, RowGroups: s.RowGroups, SHA256: s.SHA256,
	}}
	if s.Split != "" {
		f.entry.MinKey, f.entry.MaxKey = s.MinKey, s.MaxKey
	}
	return f
}

// textFile is a file of the version that is not a table, such as a report.
type textFile struct {
	path string
	body []byte
}

func (t textFile) entry() schemas.ManifestFile {
	return schemas.ManifestFile{Path: t.path, Bytes: int64(len(t.body)), SHA256: schemas.HashBytes(t.body)}
}
