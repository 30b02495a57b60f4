package publish

import (
	"encoding/json"

	"github.com/tracesmith/tracesmith/schemas"
)

// redactionPath is where Redaction stands in a version.
const redactionPath = "reports/redaction.json"

// Redaction is reports/redaction.json: the secrets that were replaced before
// anything was kept, by type, and the episodes that are not published because they
// hold one all the same. It counts what the rows say (redactions_json).
type Redaction struct {
	Schema       string              `json:"schema"` // tracesmith.redaction/1
	Episodes     int                 `json:"episodes"`
	Redacted     int                 `json:"episodes_redacted"`
	Unknown      int                 `json:"episodes_unknown"` // whose rows do not say
	Placeholders int                 `json:"placeholders"`
	Types        map[string]Redacted `json:"types"`
	HeldBack     int                 `json:"held_back"` // named in exclusions/dead-letters.parquet
}

// Redacted is what was replaced of one type of secret.
type Redacted struct {
	Placeholders int `json:"placeholders"`
	Episodes     int `json:"episodes"`
}

func newRedaction() Redaction {
	return Redaction{Schema: "tracesmith.redaction/1", Types: map[string]Redacted{}}
}

// add counts an episode.
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
		r.Types[kind] = Redacted{t.Placeholders + n, t.Episodes + 1}
		r.Placeholders += n
	}
}
