package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// sideOf returns a side with attempts at tasks: "+" is resolved, "-" is not, "?" has no verdict.
func sideOf(place string, by arrowrec.Grouping, cost *float64, tasks map[string]string) *metrics.Side {
	s := metrics.NewSide(place)
	for task, attempts := range tasks {
		for _, verdict := range attempts {
			e := schemas.EpisodeRow{TaskSource: "src", InstanceID: task, Model: "model-" + task[:1], BugKind: new("kind " + task[:1]), CostUSD: cost}
			if verdict != '?' {
				e.Resolved = new(verdict == '+')
			}
			if task == "d1" {
				e.Model = "none"
			}
			s.Add(&e, by.Value(&e))
		}
	}
	return s
}

func TestCompareCountsFlips(t *testing.T) {
	by, err := newGrouping([]string{"bug_kind"})
	if err != nil {
		t.Fatal(err)
	}
	a := sideOf("runs/a", by, new(0.25), map[string]string{"a1": "+-", "a2": "--", "a3": "++", "b1": "--", "b2": "+", "b3": "?", "c1": "+"})
	b := sideOf("runs/b", by, nil, map[string]string{"a1": "--", "a2": "-+", "a3": "+-", "b1": "--", "b2": "?", "b3": "+", "d1": "+"})
	c := metrics.Compare(a, b, by.Name())
	if c.Flips != (metrics.Flips{Both: 1, OnlyA: 1, OnlyB: 1, Neither: 1, Unverified: 2, P: 1}) {
		t.Errorf("flips %+v", c.Flips)
	}
	if c.Shared.Tasks != 4 || len(c.Tasks) != 6 || c.All.Tasks != 8 || c.All.A.Attempts != (metrics.Attempts{Resolved: 5, Verified: 10}) || c.Shared.A.Resolved != 3 || c.Shared.B.Resolved != 2 {
		t.Errorf("all %+v, shared %+v", c.All, c.Shared)
	}
	if *c.A.CostPerResolved != 11*0.25/5 || c.B.CostPerResolved != nil {
		t.Errorf("cost per resolved: %v and %v", *c.A.CostPerResolved, c.B.CostPerResolved)
	}
	if fmt.Sprintf("%d: %s %v, %s %v", len(c.Kinds), c.Kinds[0].Value, c.Kinds[0].A.Attempts, c.Kinds[3].Value, c.Kinds[3].A.Rate) != "4: kind a {3 6}, kind d <nil>" {
		t.Errorf("kinds %+v", c.Kinds)
	}
	for width, w := range map[int]*screen{0: {}, 80: {width: 80}} {
		var out bytes.Buffer
		w.Writer = &out
		printComparison(w, c, false)
		for _, want := range []string{
			"A  runs/a: 11 episodes of 7 tasks, models model-a, model-b, model-c\n", "B  runs/b: 11 episodes of 7 tasks, models model-a, model-b\n", "\n6 tasks in both\n", "resolved, tasks in both", "1 resolved by both, 1 only by A, 1 only by B, 1 by neither,\n2 without a verdict\n",
			"sign test of 1 against 1: p = 1\n", "\nresolved only by A  bug_kind    A    B\nsrc/a1              kind a    1/2  0/2\n", "\nresolved only by B  bug_kind    A    B\nsrc/a2              kind a    0/2  1/2\n",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("width %d: no %q in\n%s", width, want, out.String())
			}
		}
		if strings.Contains(out.String(), "other tasks") {
			t.Errorf("tasks that did not change are listed:\n%s", out.String())
		}
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(line)); n > 81 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
	hostile := c
	hostile.A.Models = []string{"a\x1b[31m"}
	var all bytes.Buffer
	if printComparison(&screen{Writer: &all, width: 80}, hostile, false); strings.Contains(all.String(), "\x1b") {
		t.Errorf("the terminal gets what a model's name contains: %q", all.String())
	}
	known := metrics.NewSide("runs/c")
	for _, ending := range []string{schemas.EndingEdit, schemas.EndingGoldEdit, schemas.EndingGoldEdit} {
		known.Add(&schemas.EpisodeRow{TaskSource: "src", InstanceID: "a1", GoldUsed: true, Ending: new(ending), Resolved: new(true)}, "kind a")
	}
	all.Reset()
	printComparison(&screen{Writer: &all}, metrics.Compare(known, b, by.Name()), false)
	if want := "A  runs/c: 3 episodes of 1 task, of which an agent that knows the reference fix resolved 1 by a derived edit and 2 with that fix\n"; !strings.HasPrefix(all.String(), want) {
		t.Errorf("no %q in\n%s", want, all.String())
	}
	all.Reset()
	printComparison(&screen{Writer: &all}, c, true)
	if !strings.Contains(all.String(), "\nother tasks in both") || !strings.Contains(all.String(), "src/b2") {
		t.Errorf("--all:\n%s", all.String())
	}
}
