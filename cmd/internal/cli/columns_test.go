package cli

import (
	"slices"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

func TestSortPutsUnknownValuesLast(t *testing.T) {
	episodes := []schemas.EpisodeRow{
		{EpisodeID: "a", InstanceID: "x", Attempt: 10, CostUSD: new(0.5)},
		{EpisodeID: "b", InstanceID: "x", Attempt: 2, CostUSD: new(2.0)},
		{EpisodeID: "c", InstanceID: "w"},
		{EpisodeID: "d", InstanceID: "y", CostUSD: new(0.5), NTurns: 3},
	}
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"task"}, "cbad"}, {[]string{"-task"}, "dabc"}, {[]string{"cost", "-turns"}, "dabc"}, {[]string{"-cost_usd", "task"}, "badc"}, {[]string{"gold_used"}, "abcd"},
	} {
		keys, err := newSortKeys(c.names)
		if err != nil {
			t.Fatal(err)
		}
		var rows []*listed
		for i := range episodes {
			rows = append(rows, newListed(&episodes[i], nil, keys, false))
		}
		slices.SortStableFunc(rows, func(a, b *listed) int { return compareKeys(keys, a.sort, b.sort) })
		got := ""
		for _, r := range rows {
			got += r.id
		}
		if got != c.want {
			t.Errorf("%v: %s, want %s", c.names, got, c.want)
		}
	}
}

// Every column of table episodes can be listed and sorted by, whether its values are known or not.
func TestAllColumnsCanBeListed(t *testing.T) {
	columns, err := newListColumns("columns", append(shortNames(), episodeColumns()...))
	if err != nil {
		t.Fatal(err)
	}
	var none schemas.EpisodeRow
	some := schemas.EpisodeRow{Outcome: new("resolved"), Resolved: new(true), CostUSD: new(0.25), WallMS: new(int64(1500)), ToolNames: []string{"pdb", "view"}, ProblemStatement: new("two\nlines")}
	for _, c := range columns {
		if text := c.text(&none); text == "" && c.value(&none) == nil {
			t.Errorf("%s: a null is shown as nothing", c.name)
		}
		if v := c.order(&some); v != nil && compareValues(v, v) != 0 {
			t.Errorf("%s: %v differs from itself", c.name, v)
		}
	}
	for name, want := range map[string]string{"seconds": "1.5", "tool_names": "pdb,view", "problem_statement": "two lines", "cost": "$0.2500", "tokens": "-", "resolved": "true"} {
		c, err := newListColumn("columns", name)
		if err != nil || c.text(&some) != want {
			t.Errorf("%s: %q, want %q (%v)", name, c.text(&some), want, err)
		}
	}
}
