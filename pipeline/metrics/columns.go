package metrics

import (
	"github.com/tracesmith/tracesmith/schemas"
)

// Fill writes the metrics into the rows that they were computed from, except for pack_tokens.
func (s Seeking) Fill(e *schemas.EpisodeRow, rows []schemas.StepRow) error {
	e.Redundancy, e.BreakpointValidity, e.BreakpointHitRate = s.Redundancy, s.BreakpointsValid, s.BreakpointsHit
	e.DeadInspections, e.InvalidCallRate, e.NBlindEdits = s.DeadInspections, s.InvalidCalls, s.BlindEdits
	e.MaxCommandRun, e.MaxCallRun = s.LongestCommandRun, s.LongestCallRun
	g := s.Gold
	for _, c := range s.steps {
		r := &rows[c.row]
		if r.Observation == nil || !c.known {
			continue
		}
		r.LinesShown, r.LinesNew = new(int32(c.shown)), new(int32(c.new))
		if g != nil {
			r.GoldLinesNew = new(int32(c.found))
		}
	}
	if g == nil {
		return nil
	}
	if l := g.Line; l != nil {
		e.GoldLineRecall, e.GoldLinePrecision, e.GoldLineF05 = l.Recall, l.Precision, l.F05
		e.GoldFirstContact, e.GoldRecallArea = l.FirstContact, l.RecallArea
	}
	if g.Function != nil {
		e.GoldFuncRecall = g.Function.Recall
	}
	if d := g.Declared; d != nil {
		e.GoldDeclaredFileF1 = d.File
	}
	if p := g.Pack; p != nil {
		e.GoldPackRecall, e.GoldPackPrecision, e.GoldPackSufficient = p.Line.Recall, p.Line.Precision, p.Sufficient
	}
	e.GoldEvidenceDrop, e.GoldUsefulSteps = g.EvidenceDrop, g.UsefulSteps
	e.GoldRootHit, e.GoldRootLineHit = g.RootHit, g.RootLineHit
	e.GoldBreakpointsToRoot, e.GoldBreakpointDistance = g.BreakpointsToRoot, g.BreakpointDistance
	text, err := schemas.CanonicalJSON(g)
	if err != nil {
		return err
	}
	e.GoldSeekingJSON = new(string(text))
	return nil
}
