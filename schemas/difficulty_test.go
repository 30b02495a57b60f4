package schemas

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Version 0.2.0 wrote other names for what derives from the fix. Its number of executed functions also counted those
// of tests, so it is not read.
func TestDifficultyOfVersion020IsRead(t *testing.T) {
	for text, want := range map[string]Difficulty{
		`{"visible":1,"symptom_distance":4,"executed_functions":9,"ochiai_rank":2,"cyclomatic":5,"centrality":3,"n_edits":1,"files":1,"trace_len":80,"p_policy":0.5,"policy":"react","policy_n":4,"bin":"T1"}`: {
			GoldVisible: new(1), GoldSymptomDistance: new(4), GoldOchiaiRank: new(2), GoldCyclomatic: new(5), GoldCentrality: new(3), GoldEdits: new(1),
			GoldFiles: new(1), TraceLen: new(80), PPolicy: new(0.5), Policy: "react", PolicyN: 4, GoldLevel: "T1",
		},
		`{"visible":1,"executed_functions":9}`:        {GoldVisible: new(1)}, // a bug without a rank has no bin
		`{"level":"T2","executed_functions":9}`:       {Level: "T2", ExecutedFunctions: new(9)},
		`{"gold_level":"T3","gold_ochiai_rank":11}`:   {GoldLevel: "T3", GoldOchiaiRank: new(11)},
		`{"gold_function_lines":7,"gold_visible":0}`:  {GoldFunctionLines: new(7), GoldVisible: new(0)},
		`{"traceback_functions":0,"repo_files":null}`: {TracebackFunctions: new(0)},
		`{}`: {},
	} {
		var got Difficulty
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for _, text := range []string{`{"bins":"T1"}`, `{"bin":1}`, `[]`} {
		if err := json.Unmarshal([]byte(text), new(Difficulty)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

func TestLevelDependsOnExecutedAndShownFunctions(t *testing.T) {
	for _, c := range []struct {
		executed, shown int
		want            string
	}{{0, 1, "T0"}, {3, 1, "T0"}, {4, 1, "T1"}, {10, 2, "T1"}, {11, 1, "T2"}, {30, 1, "T2"}, {31, 1, "T3"}, {500, 9, "T3"}, {3, 0, "T1"}, {30, 0, "T3"}, {31, 0, "T4"}} {
		if got := LevelOf(c.executed, c.shown); got != c.want {
			t.Errorf("%d executed functions, %d of them shown: %s, want %s", c.executed, c.shown, got, c.want)
		}
	}
}

// Agents may see only the measurements that do not derive from the fix.
func TestPublicDifficultyHasNoGoldFields(t *testing.T) {
	full := Difficulty{Level: "T1", TracebackFunctions: new(1), ExecutedFunctions: new(2), ExecutedFiles: new(3), TraceLen: new(4), RepoFiles: new(5), RepoLines: new(6),
		GoldLevel: "T0", GoldVisible: new(0), GoldFunctionShown: new(true), GoldSymptomDistance: new(1), GoldOchiaiRank: new(1), GoldCyclomatic: new(1),
		GoldFunctionLines: new(1), GoldCentrality: new(1), GoldEdits: new(1), GoldFiles: new(1), PPolicy: new(0.5), Policy: "react", PolicyN: 2}
	text, err := json.Marshal(full.Public())
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"level":"T1","traceback_functions":1,"executed_functions":2,"executed_files":3,"trace_len":4,"repo_files":5,"repo_lines":6}`; string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
}
