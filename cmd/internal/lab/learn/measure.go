// Package learn measures whether trajectories teach where to look. It trains a small model on the
// first breakpoints that the agents of a dataset chose, and counts how often the model's own choice is
// a line that the fix changes, in repositories that it was not trained on.
package learn

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// Pooled is the kind of the states that hold everything that agents without knowledge of the fix read
// in all their episodes of a task.
const Pooled = "pooled"

// Study collects episodes.
type Study struct {
	policy   string
	gold     map[string]map[line]bool // changed lines by task
	official map[string]bool          // tasks whose gold comes from AddFix
	teachers []state                  // states of the policy before its first breakpoint
	states   []state                  // all states before a first breakpoint
	pools    map[string]*pool
	unusable int // episodes of the policy that do not show what they chose
}

// pool reads the episodes of a task whose agents did not know the fix.
type pool struct {
	reader *reader
	group  string
}

// NewStudy returns a study of how well the choices of a policy (a value of the column policy) teach.
func NewStudy(policy string) *Study {
	return &Study{policy: policy, gold: map[string]map[line]bool{}, official: map[string]bool{}, pools: map[string]*pool{}}
}

// AddFix sets the fix of a task. Without it, the patches of resolved episodes are fixes of their task.
func (s *Study) AddFix(task, patch string) error {
	s.official[task] = true
	s.gold[task] = nil
	return s.addPatch(task, patch)
}

func (s *Study) addPatch(task, patch string) error {
	p, err := metrics.ParsePatch([]byte(patch))
	if err != nil {
		return fmt.Errorf("task %s: %w", task, err)
	}
	for _, file := range p.Existing {
		if !isProgram(file) {
			continue
		}
		for _, n := range p.Changed(file) {
			if s.gold[task] == nil {
				s.gold[task] = map[line]bool{}
			}
			s.gold[task][line{file, n}] = true
		}
	}
	return nil
}

// Add adds an episode. Of its columns, only policy, gold_used, split_group, repo, the settings of the
// agent and, for the evaluation, resolved and patch are used.
func (s *Study) Add(e *schemas.EpisodeRow, rows []schemas.StepRow) error {
	task, group := e.InstanceID, cmp.Or(schemas.Value(e.SplitGroup), e.Repo)
	if schemas.Value(e.Resolved) && !s.official[task] {
		if err := s.addPatch(task, schemas.Value(e.Patch)); err != nil {
			return err
		}
	}
	taught := false
	r := newReader()
	r.atFirst = func(r *reader) {
		st := r.state()
		st.task, st.group, st.kind = task, group, kindOf(e)
		s.states = append(s.states, st)
		if e.Policy == s.policy && st.chosen >= 0 {
			s.teachers = append(s.teachers, st)
			taught = true
		}
	}
	r.read(rows)
	if e.Policy == s.policy && !taught {
		s.unusable++
	}
	if !e.GoldUsed {
		if s.pools[task] == nil {
			s.pools[task] = &pool{newReader(), group}
		}
		s.pools[task].reader.read(rows)
	}
	return nil
}

// Report is the result of a study. Shares are between 0 and 1.
type Report struct {
	Schema       string   `json:"schema"`
	Policy       string   `json:"policy"`
	Trajectories int      `json:"trajectories"` // of the policy, with a first breakpoint at a line that was shown
	Unusable     int      `json:"unusable"`     // other episodes of the policy
	Groups       int      `json:"groups"`       // split groups, which are divided into parts
	Parts        int      `json:"parts"`
	ModelBytes   int      `json:"model_bytes"`
	Columns      []Column `json:"columns"`
	Rows         []Row    `json:"rows"`
}

// Column describes states of one kind.
type Column struct {
	Kind       string  `json:"kind"`
	States     int     `json:"states"` // of tasks whose fix is known
	Tasks      int     `json:"tasks"`
	Candidates int     `json:"candidates"` // median number of shown statements
	Shown      float64 `json:"shown"`      // share of the states in which a changed line is a candidate
}

// Row is how often one way to choose finds a changed line, by column.
type Row struct {
	Name    string   `json:"name"`
	Asked   int      `json:"asked,omitempty"`        // number of trajectories to train on
	Trained int      `json:"trajectories,omitempty"` // how many of them there were outside the part; the lowest number
	Hits    []*Share `json:"hits"`                   // null if it chose nothing in states of this kind
}

// Share is a share in all states, and the lowest and highest share in one of the parts.
type Share struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// question is a state for the evaluation.
type question struct {
	state
	features [][]feature
	right    []bool // candidates that hold a changed line
}

// Measure divides the split groups into parts. For each part it trains models on the others and
// evaluates them on the part.
func (s *Study) Measure(ctx context.Context, sizes []int, parts int, seed uint64) (Report, error) {
	pools := s.pooled()
	teachers := make([]state, len(s.teachers))
	for i, st := range s.teachers {
		teachers[i] = st.with(pools[st.task])
	}
	states := slices.Clone(s.states)
	for _, task := range slices.Sorted(maps.Keys(pools)) {
		states = append(states, pools[task])
	}
	partOf := divide(states, parts, seed)
	r := Report{Schema: "tracesmith.learn/1", Policy: s.policy, Trajectories: len(s.teachers), Unusable: s.unusable, Groups: len(partOf), Parts: parts, ModelBytes: 4 * len(model{}.weights)}
	questions := s.questions(states)
	if len(questions) == 0 || len(s.teachers) == 0 {
		return r, fmt.Errorf("no episode of policy %s has a first breakpoint at a line that it had seen, or no fix is known", s.policy)
	}
	t := table{report: &r, questions: questions, partOf: partOf}
	t.columns()
	examples := make([]example, len(teachers))
	for i, st := range teachers {
		examples[i] = example{features(st), st.chosen}
	}
	all := lesson{teachers, examples, partOf, parts, seed}
	slices.Sort(sizes)
	for i, size := range sizes {
		if i > 0 && sizes[i-1] >= len(examples) {
			break // the same model again
		}
		if err := t.model(ctx, all, size, plain); err != nil {
			return r, err
		}
	}
	for _, treatment := range []treatment{shuffledChoices, mixedObservations} {
		if err := t.model(ctx, all, sizes[len(sizes)-1], treatment); err != nil {
			return r, err
		}
	}
	t.controls()
	return r, ctx.Err()
}

// pooled returns the pooled states by task. They are evaluated, and are part of the states to learn
// from, because an agent that knows the fix reads little that is not needed.
func (s *Study) pooled() map[string]state {
	out := map[string]state{}
	for task, p := range s.pools {
		st := p.reader.state()
		st.task, st.group, st.kind, st.chosen, st.entry = task, p.group, Pooled, -1, -1
		out[task] = st
	}
	return out
}

// divide assigns every split group to a part.
func divide(states []state, parts int, seed uint64) map[string]int {
	partOf := map[string]int{}
	for _, st := range states {
		partOf[st.group] = 0
	}
	groups := slices.Sorted(maps.Keys(partOf))
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	for i, g := range groups {
		partOf[g] = i % parts
	}
	return partOf
}

// questions returns the states of tasks whose fix is known. A candidate is right if the fix changes one of
// the lines of its statement.
func (s *Study) questions(states []state) []question {
	var out []question
	for _, st := range states {
		gold := s.gold[st.task]
		if len(gold) == 0 {
			continue
		}
		q := question{st, features(st), make([]bool, len(st.candidates))}
		for l := range gold {
			for i, c := range st.candidates {
				q.right[i] = q.right[i] || c.contains(l)
			}
		}
		out = append(out, q)
	}
	return out
}
