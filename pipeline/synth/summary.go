package synth

import (
	"maps"
)

// Summary is the result of a run.
type Summary struct {
	Schema     string                     `json:"schema"` // "tracesmith.synth/1"
	Tasks      int                        `json:"tasks"`
	File       string                     `json:"file,omitempty"`
	Repos      int                        `json:"repos"`
	Refused    map[string]string          `json:"refused"`         // repository -> why
	Notes      map[string]string          `json:"notes,omitempty"` // repository -> why a kind of candidates is missing
	Candidates int                        `json:"candidates"`
	OverBudget int                        `json:"unasked,omitempty"` // candidates for which the budget prevented a model call
	CostUSD    float64                    `json:"cost_usd"`          // upper bound of the cost of model calls, earlier runs included
	Resumed    int                        `json:"resumed"`           // candidates that earlier runs judged
	Valid      int                        `json:"valid"`
	Released   int                        `json:"released"`
	Outcomes   map[Outcome]int            `json:"outcomes"`
	Reasons    map[Outcome]map[string]int `json:"reasons"`   // number of trials by outcome and reason
	Operators  map[string]*Tally          `json:"operators"` // by operator, or by kind for bugs other than single mutations
	PerHour    float64                    `json:"per_hour"`  // candidates judged in this run
	Seconds    float64                    `json:"seconds"`
	// NoFrame is the share of tasks whose first failing traceback shows no frame
	// of the program.
	NoFrame float64 `json:"no_program_frame"`
	// Difficulty and GoldDifficulty count the tasks by Level and GoldLevel of schemas.Difficulty, the
	// second of which is measured with the fix. "" stands for tasks that were not measured.
	Difficulty     map[string]int `json:"difficulty"`
	GoldDifficulty map[string]int `json:"gold_difficulty"`
	// OperatorNames maps the ID of each operator to its name.
	OperatorNames map[string]string `json:"operator_names"`
	SuiteRuns     SuiteRuns         `json:"suite_runs"`
	// Busy is the share of their time that the workers spent on jobs.
	Busy float64 `json:"busy"`
	// Unreliable is the number of tests left out because they gave different verdicts for the same code.
	Unreliable int `json:"unreliable_tests"`
	// NotAlone is the number of tests that the survey did not run separately, because the time for that
	// was used up. It treats them as tests that pass alone.
	NotAlone int `json:"not_alone"`
	Texts    int `json:"texts_refused"` // texts that the linter rejected
}

// SuiteRuns is the CPU time that the tasks cost, in units of one run of all tests of the healthy
// repository in a new sandbox. It includes earlier runs of the factory that this one resumes. With the
// drivers docker and kubernetes, it has only the CPU time of the tests' own interpreters.
type SuiteRuns struct {
	Survey       float64 `json:"survey"`        // runs on the healthy repositories
	Trials       float64 `json:"trials"`        // runs that judge candidates
	Releases     float64 `json:"releases"`      // checks of the valid candidates, and trials of cheating patches
	Other        float64 `json:"other"`         // of the program itself, git, the mutators, and interrupted jobs
	PerCandidate float64 `json:"per_candidate"` // Trials divided by the number of candidates
	PerTask      float64 `json:"per_task"`      // the total divided by the number of tasks
}

// suiteRuns adds up the CPU time of all runs.
func (st *factory) suiteRuns() (r SuiteRuns) {
	candidates, tasks, seconds := 0, 0, 0.0
	for _, s := range st.states {
		if s.runCPU <= 0 {
			continue
		}
		add := func(to *float64, cpu float64) {
			*to += cpu / s.runCPU
			seconds += cpu
		}
		add(&r.Survey, s.cpu)
		for _, t := range s.trials {
			if t.Outcome == Released {
				tasks++
			}
		}
		// An earlier run with a larger Config.Tasks may have judged and released more than this one uses.
		for _, t := range st.journal.trials[s.repo.Task.InstanceID] {
			add(&r.Trials, t.CPU)
			candidates++
		}
		for _, checked := range st.journal.releases[s.repo.Task.InstanceID] {
			add(&r.Releases, checked.CPU)
		}
		for _, kind := range forgeryKinds {
			if f := st.journal.forgery(s.repo.Task.InstanceID, kind); f != nil {
				add(&r.Releases, f.CPU)
			}
		}
	}
	total := r.Survey + r.Trials + r.Releases
	if seconds > 0 { // the overhead belongs to no repository, so its unit is an average run over all of them
		r.Other = st.journal.overhead * total / seconds
	}
	r.PerCandidate, r.PerTask = r.Trials/float64(max(candidates, 1)), (total+r.Other)/float64(max(tasks, 1))
	return r
}

// Tally counts the results of the candidates of one operator.
type Tally struct {
	Candidates int             `json:"candidates"`
	Valid      int             `json:"valid"` // including those that did not become tasks
	Released   int             `json:"released"`
	Outcomes   map[Outcome]int `json:"outcomes"`
}

// Yield returns the share of the candidates that are valid.
func (t Tally) Yield() float64 { return float64(t.Valid) / float64(max(t.Candidates, 1)) }

func (t *Tally) add(o Outcome) {
	t.Candidates++
	t.Outcomes[o]++
	if o.IsValid() {
		t.Valid++
	}
	if o == Released {
		t.Released++
	}
}

// summary returns the summary of the jobs that have ended. finish adds what concerns the tasks.
func (st *factory) summary() Summary {
	p := st.progress
	sum := Summary{
		Schema: "tracesmith.synth/1", Repos: len(st.states), Refused: map[string]string{}, Resumed: p.Resumed,
		Operators: map[string]*Tally{}, Reasons: map[Outcome]map[string]int{}, Seconds: p.Seconds,
		OverBudget: p.OverBudget, CostUSD: st.budget.total(), Notes: map[string]string{}, Difficulty: map[string]int{}, GoldDifficulty: map[string]int{},
		OperatorNames: map[string]string{},
	}
	all := Tally{Outcomes: map[Outcome]int{}}
	for _, s := range st.states {
		if s.refused != "" {
			sum.Refused[s.repo.Task.InstanceID] = s.refused
		}
		maps.Copy(sum.OperatorNames, s.operators)
		sum.Unreliable += len(st.unreliable(s))
		sum.NotAlone += s.notAlone
		if s.note != "" {
			sum.Notes[s.repo.Task.InstanceID] = s.note
		}
		for _, t := range s.trials {
			name := t.Kind
			if t.Kind == KindSingle {
				name = t.Operators[0]
			}
			if sum.Operators[name] == nil {
				sum.Operators[name] = &Tally{Outcomes: map[Outcome]int{}}
			}
			sum.Operators[name].add(t.Outcome)
			all.add(t.Outcome)
			if why := t.generalReason(); why != "" {
				if sum.Reasons[t.Outcome] == nil {
					sum.Reasons[t.Outcome] = map[string]int{}
				}
				sum.Reasons[t.Outcome][why]++
			}
		}
	}
	sum.SuiteRuns = st.suiteRuns()
	if p.Seconds > 0 {
		sum.Busy = st.busy / (p.Seconds * float64(st.cfg.Workers))
	}
	sum.Candidates, sum.Valid, sum.Released, sum.Outcomes = all.Candidates, all.Valid, all.Released, all.Outcomes
	if judged := p.Judged - p.Resumed; judged > 0 && p.Seconds > 0 {
		sum.PerHour = float64(judged) / p.Seconds * 3600
	}
	return sum
}
