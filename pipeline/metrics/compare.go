package metrics

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Side collects the episodes of one of two places to compare.
type Side struct {
	place string
	all   Group
	names map[string]bool                // of the models
	kinds map[string]string              // by task
	by    map[string]map[string]Attempts // by kind and by task
}

// NewSide returns a side without episodes. place is where they come from.
func NewSide(place string) *Side {
	return &Side{place: place, names: map[string]bool{}, kinds: map[string]string{}, by: map[string]map[string]Attempts{}}
}

// Add adds an episode of a kind.
func (s *Side) Add(e *schemas.EpisodeRow, kind string) {
	s.all.Add(e)
	if e.Model != "" && e.Model != "none" { // agents without a model
		s.names[e.Model] = true
	}
	task := TaskOf(e)
	s.kinds[task] = kind
	if s.by[kind] == nil {
		s.by[kind] = map[string]Attempts{}
	}
	s.by[kind][task] = s.by[kind][task].With(e)
}

// ComparedRates are the rates of A and B over the same kind of tasks.
type ComparedRates struct {
	Tasks int  `json:"tasks"`
	A     Rate `json:"a"`
	B     Rate `json:"b"`
	Difference
}

func newComparedRates(a, b map[string]Attempts) ComparedRates {
	tasks := len(a)
	for task := range b {
		if _, inA := a[task]; !inA {
			tasks++
		}
	}
	return ComparedRates{tasks, RateOf(a), RateOf(b), DifferenceOf(a, b)}
}

// ComparedKind are the rates for one kind of episodes.
type ComparedKind struct {
	Value string `json:"value"`
	ComparedRates
}

// ComparedTask is a task of A and B.
type ComparedTask struct {
	Task string   `json:"task"`
	Kind string   `json:"by"` // its kind
	A    Attempts `json:"a"`
	B    Attempts `json:"b"`
}

// OnlyA reports whether A resolved the task and B did not, although both have a verdict.
func (t *ComparedTask) OnlyA() bool { return t.B.Verified > 0 && t.A.Resolved > 0 && t.B.Resolved == 0 }

// OnlyB is the reverse of OnlyA.
func (t *ComparedTask) OnlyB() bool { return t.A.Verified > 0 && t.B.Resolved > 0 && t.A.Resolved == 0 }

// Flips counts the tasks of A and B by who resolved them with at least one attempt.
type Flips struct {
	Both       int     `json:"both"`
	OnlyA      int     `json:"only_a"`
	OnlyB      int     `json:"only_b"`
	Neither    int     `json:"neither"`
	Unverified int     `json:"unverified"` // without a verdict in A or in B
	P          float64 `json:"p"`          // of the sign test for OnlyA and OnlyB
}

// Comparison compares the verdicts and costs of two places. It is the output of compare --json.
type Comparison struct {
	Schema  string          `json:"schema"`
	A       ComparedPlace   `json:"a"`
	B       ComparedPlace   `json:"b"`
	All     ComparedRates   `json:"all_tasks"`
	Shared  ComparedRates   `json:"tasks_verified_in_both"`
	Flips   Flips           `json:"flips"` // of the tasks in both
	Tasks   []*ComparedTask `json:"tasks"` // those in both
	By      string          `json:"by"`    // what the kinds are
	Kinds   []*ComparedKind `json:"kinds"`
	Columns []Separation    `json:"columns,omitempty"` // with --columns
}

// ComparedPlace is A or B.
type ComparedPlace struct {
	Place  string   `json:"place"`
	Models []string `json:"models"`
	GroupSummary
}

func (s *Side) summary() ComparedPlace {
	return ComparedPlace{s.place, append([]string{}, slices.Sorted(maps.Keys(s.names))...), s.all.Summary()}
}

// WithGold says how many episodes are resolved by agents that know the gold patch, as the end of a line about the place; "" for none.
func (p *ComparedPlace) WithGold() string {
	if p.ResolvedGold == 0 {
		return ""
	}
	return fmt.Sprintf(", of which an agent that knows the reference fix resolved %d by a derived edit and %d with that fix", p.Derived, p.ResolvedGold-p.Derived)
}

// maxModels is the number of models that a line names.
const maxModels = 3

// WithModels names the models, as the end of a line about the place; "" if there are none.
func (p *ComparedPlace) WithModels() string {
	n := len(p.Models)
	switch {
	case n == 0:
		return ""
	case n == 1:
		return ", model " + p.Models[0]
	case n > maxModels:
		return fmt.Sprintf(", models %s and %d more", strings.Join(p.Models[:maxModels], ", "), n-maxModels)
	}
	return ", models " + strings.Join(p.Models, ", ")
}

// Compare compares A and B. by names what the kinds of their episodes are.
func Compare(a, b *Side, by string) Comparison {
	c := Comparison{
		Schema: "tracesmith.compare/2", By: by, Tasks: []*ComparedTask{}, Kinds: []*ComparedKind{},
		A: a.summary(), B: b.summary(), All: newComparedRates(a.all.Tasks, b.all.Tasks),
	}
	sharedA, sharedB := map[string]Attempts{}, map[string]Attempts{}
	for task, attempts := range a.all.Tasks {
		other, inB := b.all.Tasks[task]
		if !inB {
			continue
		}
		if attempts.Verified > 0 && other.Verified > 0 {
			sharedA[task], sharedB[task] = attempts, other
		}
		c.Tasks = append(c.Tasks, &ComparedTask{task, a.kinds[task], attempts, other})
		c.Flips.add(attempts, other)
	}
	slices.SortFunc(c.Tasks, func(x, y *ComparedTask) int { return strings.Compare(x.Task, y.Task) })
	c.Flips.P = SignTest(c.Flips.OnlyA, c.Flips.OnlyB)
	c.Shared = newComparedRates(sharedA, sharedB)
	values := map[string]bool{}
	for _, s := range []*Side{a, b} {
		for value := range s.by {
			if !values[value] {
				c.Kinds = append(c.Kinds, &ComparedKind{value, newComparedRates(a.by[value], b.by[value])})
			}
			values[value] = true
		}
	}
	slices.SortFunc(c.Kinds, func(x, y *ComparedKind) int { return strings.Compare(x.Value, y.Value) })
	return c
}

func (f *Flips) add(a, b Attempts) {
	switch {
	case a.Verified == 0 || b.Verified == 0:
		f.Unverified++
	case a.Resolved > 0 && b.Resolved > 0:
		f.Both++
	case a.Resolved > 0:
		f.OnlyA++
	case b.Resolved > 0:
		f.OnlyB++
	default:
		f.Neither++
	}
}
