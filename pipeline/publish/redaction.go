package publish

import (
	"encoding/json"

	"github.com/tracesmith/tracesmith/schemas"
)

// redactionPath is the path of Redaction in a version.
const redactionPath = "reports/redaction.json"

// Redaction is the content of reports/redaction.json. It counts, by type, the placeholders
// that replaced secrets during the runs, according to the column redactions_json. It also
// counts the episodes that publish withholds because it found another possible secret.
type Redaction struct {
	Schema       string                  `json:"schema"` // tracesmith.redaction/1
	Episodes     int                     `json:"episodes"`
	Redacted     int                     `json:"episodes_redacted"`
	Unknown      int                     `json:"episodes_unknown"` // episodes without a valid redactions_json
	Placeholders int                     `json:"placeholders"`
	Types        map[string]RedactedType `json:"types"`
	HeldBack     int                     `json:"held_back"` // listed in exclusions/dead-letters.parquet
}

// RedactedType counts the placeholders of one type of secret, and the episodes that have any.
type RedactedType struct {
	Placeholders int `json:"placeholders"`
	Episodes     int `json:"episodes"`
}

func newRedaction() Redaction {
	return Redaction{Schema: "tracesmith.redaction/1", Types: map[string]RedactedType{}}
}

func (r *Redaction) add(e schemas.EpisodeRow) {
	r.Episodes++
	var counts map[string]int
	if e.RedactionsJSON == nil || json.Unmarshal([]byte(*e.RedactionsJSON), &counts) != nil {
		r.Unknown++
		return
	}
	if len(counts) > 0 {
		r.Redacted++
	}
	for kind, n := range counts {
		t := r.Types[kind]
		r.Types[kind] = RedactedType{t.Placeholders + n, t.Episodes + 1}
		r.Placeholders += n
	}
}
