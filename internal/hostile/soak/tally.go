package soak

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/internal/hostile"
)

// Report is the result of a soak.
type Report struct {
	Schema   string         `json:"schema"` // "tracesmith.soak.commands/2"
	Seed     uint64         `json:"seed"`
	Workers  int            `json:"workers"`
	Share    float64        `json:"hostile_share"`
	Calls    int            `json:"calls"` // ordinary calls and cases, without probes
	Hostile  int            `json:"hostile"`
	Surfaces map[string]int `json:"doors"`
	Cases    map[string]int `json:"cases"`

	Hung      int     `json:"hung"` // no answer within 30 s after the limit
	Late      int     `json:"late"` // answered after limit + 1 s
	WorstLate float64 `json:"worst_late_ms"`
	LateCase  string  `json:"worst_late_case,omitempty"`
	Misframed int     `json:"misframed"` // cases after which the harness' probes were answered wrongly
	Wrong     int     `json:"wrong"`     // wrong answers
	Leftover  int     `json:"leftover"`  // cases that left processes
	Failed    int     `json:"failed"`    // other errors of the environment
	Lost      int     `json:"lost"`      // sandboxes that died

	Sandboxes int       `json:"sandboxes"`
	Median    float64   `json:"ordinary_median_ms"`
	P99       float64   `json:"ordinary_p99_ms"`
	Wall      float64   `json:"wall_seconds"`
	Leaked    Footprint `json:"grown"`
	// Failures describes the first failures, each with what is needed to reproduce it.
	Failures []string `json:"failures"`
}

// OK reports whether nothing failed. Late answers are not failures.
func (r Report) OK() bool {
	return r.Hung+r.Misframed+r.Wrong+r.Leftover+r.Failed+r.Lost == 0
}

// maxFailures is the number of failures that a report describes. Further failures are only counted.
const maxFailures = 50

// tally counts results. It is safe for concurrent use.
type tally struct {
	mu sync.Mutex
	r  Report
	ms []float64 // durations of ordinary calls in milliseconds
}

func newTally() tally {
	return tally{r: Report{Schema: "tracesmith.soak.commands/2", Surfaces: map[string]int{}, Cases: map[string]int{}}}
}

// addSandbox counts a new sandbox.
func (t *tally) addSandbox() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.r.Sandboxes++
}

// addOrdinary counts an ordinary call of a tool. wrong says what is wrong with the answer; "" if
// nothing is.
func (t *tally) addOrdinary(index int, tool string, a hostile.Answer, wrong string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.r.Calls++
	t.r.Surfaces[tool]++
	t.ms = append(t.ms, float64(a.Took)/float64(time.Millisecond))
	t.recordTime(tool, a)
	switch {
	case a.Hung():
	case a.Died():
		t.r.Lost++
	case a.Err != nil:
		t.r.Failed++
	case wrong != "":
		t.r.Wrong++
	default:
		return
	}
	t.addFailure(index, "ordinary "+tool, fmt.Sprintf("%s %v", wrong, a.Err))
}

// addHostile counts a hostile case.
func (t *tally) addHostile(index int, v hostile.Verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.r.Calls++
	t.r.Hostile++
	t.r.Surfaces["hostile "+string(v.Case.Surface)]++
	t.r.Cases[v.Case.Name]++
	t.recordTime(v.Case.Name, v.Answer)
	if !v.Failed() {
		return
	}
	switch {
	case v.Answer.Hung():
	case v.Died:
		t.r.Lost++
	case v.Err != nil:
		t.r.Failed++
	}
	for _, c := range []struct {
		list  []string
		count *int
	}{{v.Misframed, &t.r.Misframed}, {v.Wrong, &t.r.Wrong}, {v.Leftover, &t.r.Leftover}} {
		if len(c.list) > 0 {
			*c.count++
		}
	}
	t.addFailure(index, v.Case.Name, v.String())
}

// recordTime counts the answer if it is missing or late.
func (t *tally) recordTime(name string, a hostile.Answer) {
	if a.Hung() {
		t.r.Hung++
	}
	if late := float64(a.Late()) / float64(time.Millisecond); late > 0 {
		t.r.Late++
		if late > t.r.WorstLate {
			t.r.WorstLate, t.r.LateCase = late, name
		}
	}
}

// addFailure describes a failure in the report.
func (t *tally) addFailure(index int, name, text string) {
	if len(t.r.Failures) < maxFailures {
		t.r.Failures = append(t.r.Failures, fmt.Sprintf("call %d, %s: %s", index, name, text))
	}
}

// report returns a copy of the counts so far.
func (t *tally) report(wall time.Duration) Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.r
	r.Surfaces, r.Cases = maps.Clone(t.r.Surfaces), maps.Clone(t.r.Cases)
	r.Failures = slices.Clone(t.r.Failures)
	r.Wall = wall.Seconds()
	sorted := slices.Sorted(slices.Values(t.ms))
	r.Median, r.P99 = rank(sorted, 0.5), rank(sorted, 0.99)
	return r
}

// rank returns the nearest-rank quantile.
func rank(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}
