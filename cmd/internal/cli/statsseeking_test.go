package cli

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

func TestMeansByColumn(t *testing.T) {
	by, err := newGrouping([]string{"difficulty", "gold_operator"})
	if err != nil {
		t.Fatal(err)
	}
	s := newSeekingStats(by[:1], by[1:], by)
	var empty bytes.Buffer
	if s.print(&empty, "difficulty"); empty.Len() > 0 || s.json() != nil {
		t.Errorf("no episodes: %s", empty.String())
	}
	for i, e := range []schemas.EpisodeRow{
		{InstanceID: "a", Difficulty: new("T0"), GoldOperator: new("r1"), GoldLineRecall: new(1.0), GoldFirstContact: new(int32(3))},
		{InstanceID: "b", Difficulty: new("T0"), GoldOperator: new("r2"), GoldLineRecall: new(0.5), GoldFirstContact: new(int32(5))},
		{InstanceID: "c", GoldLineRecall: new(0.0)},
	} {
		e.EpisodeID = string(rune('a' + i))
		s.add(&e)
	}
	var b bytes.Buffer
	s.print(&b, "difficulty")
	for _, want := range []string{
		`(?m)^information seeking +mean +95 % interval +episodes +tasks$`,
		`(?m)^  gold_line_recall +0\.500 +0\.000 to 1\.000 +3 +3$`,
		`(?m)^  gold_reached +0\.667 .*\n  gold_first_contact +4\.000 +3\.000 to 5\.000 +2 +2$`,
		`(?m)^difficulty T0\n  gold_line_recall +0\.750 `,
		`(?m)^difficulty unknown\n  gold_line_recall +0\.000 +1 +1$`,
	} {
		if !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("no match of %s in:\n%s", want, b.String())
		}
	}
	means := s.json().By
	if len(means["gold_operator"]) != 3 || means["gold_operator"]["r2"][0].Mean != 0.5 || len(means["difficulty"]) != 2 || means["difficulty,gold_operator"]["T0, r2"][0].Mean != 0.5 {
		t.Errorf("%+v", means)
	}
}
