package metrics

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
)

// Mean is the mean of a metric over the episodes in which it is known.
type Mean struct {
	Metric   string   `json:"metric"`
	Mean     float64  `json:"mean"`
	Low      *float64 `json:"low"` // 95 % confidence interval; nil for a single task
	High     *float64 `json:"high"`
	Episodes int      `json:"episodes"`
	Tasks    int      `json:"tasks"`
}

// Summary collects the metrics of information seeking of episodes. Its zero value is empty.
type Summary struct {
	tasks    map[string]*taskSums
	episodes int
}

// Episodes returns the number of episodes that were added.
func (s *Summary) Episodes() int { return s.episodes }

// taskSums holds the sum and the number of the known values of each metric.
type taskSums struct {
	sum []float64
	n   []int
}

// summarized lists the metrics of a Summary in the order of their output.
var summarized = []struct {
	name  string
	value func(*schemas.EpisodeRow) *float64
}{
	{"gold_line_recall", func(e *schemas.EpisodeRow) *float64 { return e.GoldLineRecall }},
	{"gold_line_precision", func(e *schemas.EpisodeRow) *float64 { return e.GoldLinePrecision }},
	{"gold_line_f05", func(e *schemas.EpisodeRow) *float64 { return e.GoldLineF05 }},
	{"gold_func_recall", func(e *schemas.EpisodeRow) *float64 { return e.GoldFuncRecall }},
	{"gold_reached", reached},
	{"gold_first_contact", func(e *schemas.EpisodeRow) *float64 { return fromInt(e.GoldFirstContact) }},
	{"gold_recall_area", func(e *schemas.EpisodeRow) *float64 { return e.GoldRecallArea }},
	{"gold_evidence_drop", func(e *schemas.EpisodeRow) *float64 { return e.GoldEvidenceDrop }},
	{"gold_declared_file_f1", func(e *schemas.EpisodeRow) *float64 { return e.GoldDeclaredFileF1 }},
	{"gold_useful_steps", func(e *schemas.EpisodeRow) *float64 { return e.GoldUsefulSteps }},
	{"gold_root_hit", func(e *schemas.EpisodeRow) *float64 { return fromBool(e.GoldRootHit) }},
	{"gold_root_line_hit", func(e *schemas.EpisodeRow) *float64 { return fromBool(e.GoldRootLineHit) }},
	{"gold_breakpoints_to_root", func(e *schemas.EpisodeRow) *float64 { return fromInt(e.GoldBreakpointsToRoot) }},
	{"gold_breakpoint_distance", func(e *schemas.EpisodeRow) *float64 { return fromInt(e.GoldBreakpointDistance) }},
	{"gold_pack_recall", func(e *schemas.EpisodeRow) *float64 { return e.GoldPackRecall }},
	{"gold_pack_precision", func(e *schemas.EpisodeRow) *float64 { return e.GoldPackPrecision }},
	{"gold_pack_sufficient", func(e *schemas.EpisodeRow) *float64 { return fromBool(e.GoldPackSufficient) }},
	{"gold_pack_recall_per_1k_tokens", packRecallPerToken},
	{"redundancy", func(e *schemas.EpisodeRow) *float64 { return e.Redundancy }},
	{"breakpoint_validity", func(e *schemas.EpisodeRow) *float64 { return e.BreakpointValidity }},
	{"breakpoint_hit_rate", func(e *schemas.EpisodeRow) *float64 { return e.BreakpointHitRate }},
	{"dead_inspections", func(e *schemas.EpisodeRow) *float64 { return e.DeadInspections }},
	{"invalid_call_rate", func(e *schemas.EpisodeRow) *float64 { return e.InvalidCallRate }},
	{"max_command_run", func(e *schemas.EpisodeRow) *float64 { return fromInt(e.MaxCommandRun) }},
	{"max_call_run", func(e *schemas.EpisodeRow) *float64 { return fromInt(e.MaxCallRun) }},
	{"n_blind_edits", func(e *schemas.EpisodeRow) *float64 { return fromInt(e.NBlindEdits) }},
}

// reached tells whether a step showed a line of the fix. Its mean belongs beside that of
// gold_first_contact, which is known only for such episodes.
func reached(e *schemas.EpisodeRow) *float64 {
	if e.GoldLineRecall == nil {
		return nil
	}
	return fromBool(new(*e.GoldLineRecall > 0))
}

func packRecallPerToken(e *schemas.EpisodeRow) *float64 {
	if e.GoldPackRecall == nil || e.PackTokens == nil || *e.PackTokens == 0 {
		return nil
	}
	return new(*e.GoldPackRecall * 1000 / float64(*e.PackTokens))
}

func fromInt(v *int32) *float64 {
	if v == nil {
		return nil
	}
	return new(float64(*v))
}

func fromBool(v *bool) *float64 {
	switch {
	case v == nil:
		return nil
	case *v:
		return new(1.0)
	}
	return new(0.0)
}

// Add adds an episode.
func (s *Summary) Add(e *schemas.EpisodeRow) {
	if s.tasks == nil {
		s.tasks = map[string]*taskSums{}
	}
	s.episodes++
	key := e.TaskSource + "\x00" + e.InstanceID
	t := s.tasks[key]
	if t == nil {
		t = &taskSums{make([]float64, len(summarized)), make([]int, len(summarized))}
		s.tasks[key] = t
	}
	for i, m := range summarized {
		if v := m.value(e); v != nil {
			t.sum[i] += *v
			t.n[i]++
		}
	}
}

// Means returns the means of the metrics that are known for some episode. The confidence intervals
// come from a bootstrap that draws tasks, because the attempts at a task are not independent. Equal
// episodes in any order give equal intervals.
func (s *Summary) Means() []Mean {
	var tasks []*taskSums
	for _, key := range slices.Sorted(maps.Keys(s.tasks)) {
		tasks = append(tasks, s.tasks[key])
	}
	var known []int // indexes of the metrics that have a mean
	for i := range summarized {
		if slices.ContainsFunc(tasks, func(t *taskSums) bool { return t.n[i] > 0 }) {
			known = append(known, i)
		}
	}
	samples := make([][]float64, len(summarized)) // means of the samples
	r := rand.New(rand.NewPCG(0, 0))
	for range resamples {
		sum, n := make([]float64, len(summarized)), make([]int, len(summarized))
		for range tasks {
			t := tasks[r.IntN(len(tasks))]
			for _, i := range known {
				sum[i] += t.sum[i]
				n[i] += t.n[i]
			}
		}
		for _, i := range known {
			if n[i] > 0 { // the tasks that were drawn may not have it
				samples[i] = append(samples[i], sum[i]/float64(n[i]))
			}
		}
	}
	var out []Mean
	for _, i := range known {
		mean := Mean{Metric: summarized[i].name}
		for _, t := range tasks {
			if t.n[i] > 0 {
				mean.Tasks++
				mean.Episodes += t.n[i]
				mean.Mean += t.sum[i]
			}
		}
		mean.Mean /= float64(mean.Episodes)
		if mean.Tasks > 1 {
			mean.Low, mean.High = interval(samples[i])
		}
		out = append(out, mean)
	}
	return out
}
