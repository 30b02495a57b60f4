package synth

import "maps"

// Progress is how far a run is.
type Progress struct {
	Repos    int             `json:"repos"`
	Surveyed int             `json:"surveyed"`
	Planned  int             `json:"planned"` // candidates, so far
	Judged   int             `json:"judged"`
	Kept     int             `json:"kept"` // of these by earlier runs
	Outcomes map[Outcome]int `json:"outcomes"`
	Chosen   int             `json:"chosen"` // valid ones that shall be tasks
	Checked  int             `json:"checked"`
	Released int             `json:"released"`
	Unasked  int             `json:"unasked,omitempty"` // candidates that the model was not asked for: the budget
	Seconds  float64         `json:"seconds"`
}

func (p *Progress) count(t *Trial) {
	outcomes := maps.Clone(p.Outcomes) // whoever was told of the last one keeps it
	if outcomes == nil {
		outcomes = map[Outcome]int{}
	}
	outcomes[t.Outcome]++
	p.Outcomes = outcomes
	p.Judged++
}
