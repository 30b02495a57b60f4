package synth

import (
	"maps"
	"slices"
)

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

// Summary is what a run made.
type Summary struct {
	Schema     string                     `json:"schema"` // "tracesmith.synth/1"
	Tasks      int                        `json:"tasks"`
	File       string                     `json:"file,omitempty"`
	Repos      int                        `json:"repos"`
	Refused    map[string]string          `json:"refused"`         // repository -> why
	Notes      map[string]string          `json:"notes,omitempty"` // repository -> what could not be looked for
	Candidates int                        `json:"candidates"`
	Unasked    int                        `json:"unasked,omitempty"` // further ones that the budget left no money to ask a model for
	CostUSD    float64                    `json:"cost_usd"`          // of models, at most, earlier runs included
	Resumed    int                        `json:"resumed"`           // candidates that earlier runs judged
	Valid      int                        `json:"valid"`
	Outcomes   map[Outcome]int            `json:"outcomes"`
	Operators  map[string]map[Outcome]int `json:"operators"`
	PerHour    float64                    `json:"per_hour"` // candidates judged in this run
	Seconds    float64                    `json:"seconds"`
	// NoFrame is the share of tasks whose first failing traceback shows no frame
	// of the program.
	NoFrame float64 `json:"no_program_frame"`
	Texts   int     `json:"texts_refused"` // renderings that the linter refused
}

// Yield is the share of candidates that are valid bugs, tasks or not.
func (s Summary) Yield() float64 {
	if s.Candidates == 0 {
		return 0
	}
	return float64(s.Valid) / float64(s.Candidates)
}

// Sound says that a candidate passed its trial, whether it became a task or not.
func (o Outcome) Sound() bool {
	return slices.Contains([]Outcome{Valid, Duplicate, Equivalent, Capped, Unverified, Released}, o)
}

func (st *stage) summary() Summary {
	p := st.progress
	sum := Summary{
		Schema: "tracesmith.synth/1", Repos: len(st.states), Refused: map[string]string{}, Resumed: p.Kept,
		Outcomes: map[Outcome]int{}, Operators: map[string]map[Outcome]int{}, Seconds: p.Seconds,
		Unasked: p.Unasked, CostUSD: st.purse.total(), Notes: map[string]string{},
	}
	for _, s := range st.states {
		if s.refused != "" {
			sum.Refused[s.repo.Task.InstanceID] = s.refused
		}
		if s.note != "" {
			sum.Notes[s.repo.Task.InstanceID] = s.note
		}
		for _, t := range s.trials {
			sum.Candidates++
			sum.Outcomes[t.Outcome]++
			if t.Outcome.Sound() {
				sum.Valid++
			}
			name := t.Kind
			if t.Kind == KindSingle {
				name = t.Operators[0]
			}
			if sum.Operators[name] == nil {
				sum.Operators[name] = map[Outcome]int{}
			}
			sum.Operators[name][t.Outcome]++
		}
	}
	if judged := p.Judged - p.Kept; judged > 0 && p.Seconds > 0 {
		sum.PerHour = float64(judged) / p.Seconds * 3600
	}
	return sum
}
