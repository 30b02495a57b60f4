package normalise

import (
	"github.com/tracesmith/tracesmith/pipeline/audit"
	"github.com/tracesmith/tracesmith/schemas"
)

// evidence fills the columns about padding and about values that differ in the fixed program.
func (n *normaliser) evidence(e *schemas.EpisodeRow, rows []schemas.StepRow, record *audit.Record) {
	audit.Padding(e, rows, record)
	if n.cfg.Compare == nil {
		return
	}
	if evidence := n.cfg.Compare(record); evidence != nil {
		evidence.Fill(e, rows)
	}
}
