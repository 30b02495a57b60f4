package synth

import "maps"

// Progress is how far a run is.
type Progress struct {
	Repos      int             `json:"repos"`
	Surveyed   int             `json:"surveyed"`
	SurveyRuns int             `json:"survey_runs"` // runs of single tests that the surveys need, so far
	SurveyDone int             `json:"survey_done"`
	Planned    int             `json:"planned"` // candidates, so far
	Judged     int             `json:"judged"`
	Kept       int             `json:"kept"` // of these by earlier runs
	Outcomes   map[Outcome]int `json:"outcomes"`
	Chosen     int             `json:"chosen"` // valid ones that shall be tasks
	Checked    int             `json:"checked"`
	Released   int             `json:"released"`
	Unasked    int             `json:"unasked,omitempty"` // candidates that the model was not asked for: the budget
	Seconds    float64         `json:"seconds"`
	Remaining  float64         `json:"remaining_seconds"` // estimate for what is planned; 0: unknown
}

func (p *Progress) count(t *Trial) {
	outcomes := maps.Clone(p.Outcomes) // earlier callers keep theirs
	if outcomes == nil {
		outcomes = map[Outcome]int{}
	}
	outcomes[t.Outcome]++
	p.Outcomes = outcomes
	p.Judged++
}

// jobKind divides jobs by how long they take.
type jobKind int

const (
	jobOther jobKind = iota
	jobSurvey
	jobTrial
	jobRelease
	jobKinds
)

// pace is how long the jobs of a kind take.
type pace struct{ units, seconds float64 }
