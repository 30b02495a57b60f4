package audit

import "github.com/tracesmith/tracesmith/schemas"

// Fill writes the evidence into the rows that the record was read from.
func (e *Evidence) Fill(row *schemas.EpisodeRow, rows []schemas.StepRow) {
	row.GoldEvidenceDiffers, row.GoldValueRecall, row.GoldInspectionPrecision = e.Differ, e.ValueRecall, e.Precision
	row.GoldEvidencePossible = &e.Possible
	row.GoldCausalShare, row.GoldCandidateBits, row.GoldUnknownInspections = e.Causal, e.CandidateBits, e.UnknownShare
	for i := range rows {
		if rows[i].Source == "agent" {
			rows[i].GoldNDiffering = e.Differing(int(rows[i].StepIndex))
		}
	}
}
