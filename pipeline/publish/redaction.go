package publish

import (
	"encoding/json"

	"github.com/tracesmith/tracesmith/schemas"
)

// redactionPath is where a version of a dataset stores its Redaction.
const redactionPath = "reports/redaction.json"

// Redaction is the content of reports/redaction.json. It counts, by type, the secrets
// that placeholders replaced during the runs, as the column redactions_json has them.
// It also counts the episodes withheld because publish found a further possible secret.
type Redaction struct {
	Schema       string                  `json:"schema"` // tracesmith.redaction/1
	Episodes     int                     `json:"episodes"`
	Redacted     int                     `json:"episodes_redacted"`
	Unknown      int                     `json:"episodes_unknown"` // without valid redactions_json
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
