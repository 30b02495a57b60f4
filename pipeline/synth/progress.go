package synth

import "maps"

// Progress is how far a run is.
type Progress struct {
	Repos      int             `json:"repos"`
	Surveyed   int             `json:"surveyed"`
	SurveyRuns int             `json:"survey_runs"` // runs of single tests that the surveys need, so far
	SurveyDone int             `json:"survey_done"`
	Planned    int             `json:"planned"` // candidates planned so far
	Judged     int             `json:"judged"`  // candidates judged so far
	Resumed    int             `json:"kept"`    // of Judged, those that earlier runs judged
	Outcomes   map[Outcome]int `json:"outcomes"`
	Chosen     int             `json:"chosen"`            // valid candidates that are to become tasks
	Checked    int             `json:"checked"`           // of Chosen, those whose release checks are done
	Released   int             `json:"released"`          // of Checked, those that became tasks
	OverBudget int             `json:"unasked,omitempty"` // candidates for which the budget prevented a model call
	Seconds    float64         `json:"seconds"`
	Remaining  float64         `json:"remaining_seconds"` // estimate for the planned jobs; 0 if unknown
}

// count adds a judged candidate.
func (p *Progress) count(t *Trial) {
	outcomes := maps.Clone(p.Outcomes) // Config.Progress may have kept the old map
	if outcomes == nil {
		outcomes = map[Outcome]int{}
	}
	outcomes[t.Outcome]++
	p.Outcomes = outcomes
	p.Judged++
}

// jobKind groups jobs that take similarly long.
type jobKind int

const (
	jobOther jobKind = iota
	jobSurvey
	jobTrial
	jobRelease
	jobKinds
)

// pace records how many units of work of a kind were done, and how long they took.
type pace struct{ units, seconds float64 }
