package metrics

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
)

func recallOf(task string, recall float64, contact int32) schemas.EpisodeRow {
	e := schemas.EpisodeRow{InstanceID: task, GoldLineRecall: &recall}
	if contact > 0 {
		e.GoldFirstContact = &contact
	}
	return e
}

func meanOf(means []Mean, metric string) *Mean {
	if i := slices.IndexFunc(means, func(m Mean) bool { return m.Metric == metric }); i >= 0 {
		return &means[i]
	}
	return nil
}

func TestSummary(t *testing.T) {
	var s Summary
	if s.Means() != nil {
		t.Error("no episodes have means")
	}
	for _, e := range []schemas.EpisodeRow{recallOf("a", 1, 2), recallOf("a", 0.5, 6), recallOf("b", 0, 0)} {
		s.Add(&e)
	}
	means := s.Means()
	if m := meanOf(means, "gold_line_recall"); m.Mean != 0.5 || m.Episodes != 3 || m.Tasks != 2 || *m.Low != 0 || *m.High != 0.75 {
		t.Errorf("%+v", m)
	}
	// The episode that never reached the fix lowers the reach rate and not the mean of its step.
	if m := meanOf(means, "gold_first_contact"); m.Mean != 4 || m.Episodes != 2 || m.Tasks != 1 || m.Low != nil {
		t.Errorf("%+v", m)
	}
	if m := meanOf(means, "gold_reached"); m.Mean != 2.0/3 {
		t.Errorf("%+v", m)
	}
	if meanOf(means, "redundancy") != nil {
		t.Error("an unknown metric has a mean")
	}
}

// The intervals do not depend on the order of the episodes. They cover the mean of the population,
// and drawing tasks makes them wider than drawing episodes if the attempts at a task are equal.
func TestConfidenceIntervals(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	covered := 0
	const trials = 50
	for range trials {
		var episodes []schemas.EpisodeRow
		for task := range 40 {
			recall := r.Float64()
			for range 5 {
				episodes = append(episodes, recallOf(strconv.Itoa(task), recall, 1))
			}
		}
		var one, two Summary
		for i := range episodes {
			one.Add(&episodes[i])
		}
		r.Shuffle(len(episodes), func(i, j int) { episodes[i], episodes[j] = episodes[j], episodes[i] })
		for i := range episodes {
			two.Add(&episodes[i])
		}
		if diff := cmp.Diff(one.Means(), two.Means()); diff != "" {
			t.Fatal(diff)
		}
		m := meanOf(one.Means(), "gold_line_recall")
		if *m.Low <= 0.5 && 0.5 <= *m.High {
			covered++
		}
		if width := *m.High - *m.Low; width < 0.12 || width > 0.24 { // 2·1.96·0.289/√40 = 0.179
			t.Errorf("an interval of width %v", width)
		}
	}
	if covered < trials*84/100 {
		t.Errorf("%d of %d intervals contain the mean", covered, trials)
	}
}
