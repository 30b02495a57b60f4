package metrics

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// Separation says how well a column tells the episodes of two groups apart.
type Separation struct {
	Column string     `json:"column"`
	Mean   [2]float64 `json:"mean"`     // of each group
	N      [2]int     `json:"episodes"` // in which the column is known
	// AUC is the probability that an episode of the first group has a greater value than one of the
	// second group; equal values count half. 0.5 means that the column does not tell them apart.
	AUC  float64  `json:"auc"`
	Low  *float64 `json:"low"` // 95 % confidence interval; nil for a single task
	High *float64 `json:"high"`
}

// Separator collects the values of columns in the episodes of two groups. Its zero value is empty.
type Separator struct {
	tasks   map[string]int
	columns map[string][]observation
}

// observation is the value of a column in one episode.
type observation struct {
	value       float64
	group, task int
}

// Add adds an episode of group 0 or 1. values holds the columns that are known.
func (s *Separator) Add(group int, task string, values map[string]float64) {
	if s.tasks == nil {
		s.tasks, s.columns = map[string]int{}, map[string][]observation{}
	}
	number, known := s.tasks[task]
	if !known {
		number = len(s.tasks)
		s.tasks[task] = number
	}
	for column, v := range values {
		s.columns[column] = append(s.columns[column], observation{v, group, number})
	}
}

// Separations returns the columns that are known in both groups, those that separate them best
// first. The confidence intervals come from a bootstrap that draws tasks; an episode counts as often
// as its task is drawn, in both groups. Equal episodes in the same order give equal intervals.
func (s *Separator) Separations() []Separation {
	draws := make([][]float64, resamples) // by sample and task
	r := rand.New(rand.NewPCG(0, 0))
	for i := range draws {
		draws[i] = make([]float64, len(s.tasks))
		for range s.tasks {
			draws[i][r.IntN(len(s.tasks))]++
		}
	}
	var out []Separation
	for column, all := range s.columns {
		slices.SortStableFunc(all, func(a, b observation) int { return cmp.Compare(a.value, b.value) })
		sep := Separation{Column: column}
		for _, o := range all {
			sep.N[o.group]++
			sep.Mean[o.group] += o.value
		}
		if sep.N[0] == 0 || sep.N[1] == 0 {
			continue
		}
		sep.Mean[0], sep.Mean[1] = sep.Mean[0]/float64(sep.N[0]), sep.Mean[1]/float64(sep.N[1])
		sep.AUC, _ = auc(all, func(int) float64 { return 1 })
		var samples []float64
		for _, times := range draws {
			if a, ok := auc(all, func(task int) float64 { return times[task] }); ok {
				samples = append(samples, a)
			}
		}
		if len(s.tasks) > 1 && len(samples) > 1 {
			sep.Low, sep.High = interval(samples)
		}
		out = append(out, sep)
	}
	slices.SortFunc(out, func(a, b Separation) int {
		return cmp.Or(cmp.Compare(max(b.AUC, 1-b.AUC), max(a.AUC, 1-a.AUC)), cmp.Compare(a.Column, b.Column))
	})
	return out
}

// auc returns the AUC of observations in ascending order; weight is that of a task. ok is false if
// a group has no weight.
func auc(sorted []observation, weight func(task int) float64) (a float64, ok bool) {
	var below [2]float64 // the weight of smaller values in each group
	wins := 0.0
	for i := 0; i < len(sorted); {
		var equal [2]float64
		value := sorted[i].value
		for ; i < len(sorted) && sorted[i].value == value; i++ {
			equal[sorted[i].group] += weight(sorted[i].task)
		}
		wins += equal[0] * (below[1] + equal[1]/2)
		below[0], below[1] = below[0]+equal[0], below[1]+equal[1]
	}
	if below[0] == 0 || below[1] == 0 {
		return 0, false
	}
	return wins / (below[0] * below[1]), true
}
