package policies_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/policies"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/internal/tooltest"
	"github.com/tracesmith/tracesmith/schemas"
)

// excerpt is a text that an observation must contain. Turns count from 1.
type excerpt struct {
	turn int
	text string
}

// value is a text that pdb prints at a stop. The fixed program also reaches the stop and prints fixed there.
type value struct {
	turn         int
	stop         string // file:line
	buggy, fixed string
}

// expectation is what a transcript must show to be good or bad in the way that README.md in its directory says.
type expectation struct {
	values   []value
	excerpts []excerpt
}

// end follows the last line that a command prints. With it, an expected 5 does not match 52.
const end = "\nCurrent frame"

var expectations = map[string]expectation{
	"good-courier": {
		values: []value{
			{5, "courier/delivery.py:26", "(5, True)", "(0, False)"},
			{10, "courier/options.py:23", "\n5" + end, "\n0" + end},
		},
		excerpts: []excerpt{{9, "({'retries': 0, 'compress': False}, 5)"}, {11, "(0, 0.5)"}},
	},
	"good-greenhouse": {
		values:   []value{{6, "greenhouse/alarms.py:37", "Range(low=8, high=32)", "Range(low=18.0, high=24.0)"}},
		excerpts: []excerpt{{8, "{'3': Range(low=18.0, high=24.0)"}, {9, "(Range(low=18.0, high=24.0), Range(low=8, high=32))"}},
	},
	"good-intake": {
		values: []value{
			{6, "intake/checks.py:7", "(30, 220)", "(0, 120)"},
			{10, "intake/checks.py:34", "(False, True)", "(True, False)"},
		},
		excerpts: []excerpt{{7, "('age', '7')"}, {8, "(['0', '120'], 0, 120)"}, {9, "(30, 220)  [old: (0, 120)]"}},
	},
	"good-invoicing": {
		values: []value{
			{6, "invoicing/tax.py:31", "Decimal('1.034999", "Decimal('1.03500')"},
			{7, "invoicing/tax.py:31", "Decimal('0.0749999", "Decimal('0.075')"},
		},
		excerpts: []excerpt{{8, "(Decimal('13.80'), Decimal('1.04'))"}, {9, "(7.5, 0.075, Decimal('0.0749999"}},
	},
	"good-stockroom": {
		values: []value{
			{6, "stockroom/history.py:33", "(35, 35)", "(40, 35)"},
			{10, "stockroom/history.py:17", "True" + end, "False" + end},
		},
		excerpts: []excerpt{{7, `room.receive("bolt", "A1", 40)`}, {9, "('morning', 40)"}},
	},
	"good-waymark": {
		values:   []value{{6, "waymark/planner.py:20", "(4, 4, {('depot'", "(4, 5, {('depot'"}},
		excerpts: []excerpt{{5, "(4, 4, 0)"}, {8, "{frozenset({"}, {10, "1 passed"}},
	},
	"bad-blind-agenda": {
		excerpts: []excerpt{{5, "6 passed, 2 failed"}, {7, "7 passed, 1 failed"}, {9, "8 passed, 0 failed"}},
	},
	"bad-dump-intake": {
		excerpts: []excerpt{{6, "{'answer': '7', 'high': 220, 'low': 30}"}, {8, "'_fields': [Field(name='age'"}},
	},
	"bad-false-rulefile": { // the messages claim 8 failures, column 13, margin 10, line 1 and 9 passes
		values:   []value{{6, "rulefile/lexer.py:31", "14" + end, "13" + end}, {7, "rulefile/lexer.py:31", "(9, 22)", "(10, 22)"}},
		excerpts: []excerpt{{1, "6 passed, 2 failed"}, {8, "2" + end}, {10, "8 passed, 0 failed"}},
	},
	"bad-hollow-stockroom": { // the values are healthy: the fixed program prints the same
		values: []value{
			{7, "stockroom/history.py:14", "'morning'", "'morning'"},
			{8, "stockroom/history.py:14", "{'A1': 40, 'B2': 10}", "{'A1': 40, 'B2': 10}"},
			{9, "stockroom/history.py:14", "{}" + end, "{}" + end},
		},
	},
	"bad-leak-bankfeed": {
		excerpts: []excerpt{{4, "'2,450.00'"}, {5, "Decimal('2450.00')"}},
	},
	"bad-padding-taskboard": {
		values:   []value{{12, "taskboard/query.py:16", "['urgent']" + end, "[]" + end}},
		excerpts: []excerpt{{9, "card = Card(1, 'paint')"}, {13, "['urgent']"}, {17, "['urgent']"}},
	},
}

// auditedInShort are the transcripts whose values the short form compares by tracing both versions: one with values
// that differ, one with healthy values, and one with padding. make full compares all.
var auditedInShort = []string{"good-courier", "bad-hollow-stockroom", "bad-padding-taskboard"}

// TestAgentsHandwrittenTranscripts plays the transcripts in real sandboxes. No call fails, the tests pass at
// the end, and the observations show what makes the transcript good or bad.
func TestAgentsHandwrittenTranscripts(t *testing.T) {
	suite.Agents.Require(t)
	source, tasks := builtinTasks(t)
	files, err := filepath.Glob("../../pipeline/audit/testdata/transcripts/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(expectations) {
		t.Errorf("%d files, but %d transcripts are listed", len(files), len(expectations))
	}
	decided := map[bool]int{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		want, listed := expectations[name]
		if !listed {
			t.Errorf("%s is not listed", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			id := name[strings.LastIndex(name, "-")+1:]
			i := slices.IndexFunc(tasks, func(task schemas.Task) bool { return task.InstanceID == id })
			if i < 0 {
				t.Fatalf("no built-in task %s", id)
			}
			steps := play(t, source, tasks[i], map[string]any{"file": file})
			if os.Getenv("TRACESMITH_TEST_PRINT") != "" {
				printSteps(t, steps)
			}
			good := strings.HasPrefix(name, "good-")
			checkEpisode(t, good, steps)
			checkShown(t, want, steps)
			tree, err := source.Tree(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if !testing.Short() || slices.Contains(auditedInShort, name) {
				checkAudit(t, tree, tasks[i], name, want.values, steps)
			}
			a := auditedOf(t, tasks[i], tree, tooltest.Set(t, tooltest.Kit(t, nil)).Schemas(), steps)
			if good {
				checkGrounded(t, a)
			} else if found, _ := a.alarms(); name == "bad-leak-bankfeed" && len(found) < 3 {
				t.Errorf("the auditor finds only %q", found)
			}
			checkExtractedClaims(t, name, tasks[i], steps)
			checkHeldOut(t, name, tasks[i], steps, decided)
			if len(want.values) > 0 {
				checkFixed(t, source, tasks[i], file, want.values)
			}
		})
	}
	if !t.Failed() && (decided[true] < 28 || decided[false] < 28) {
		t.Errorf("the auditor decides %d of the 30 true and %d of the 30 false sentences in heldout.yaml", decided[true], decided[false])
	}
}

// play plays a script and returns its calls. No call may fail.
func play(t *testing.T, source env.Source, task schemas.Task, script map[string]any) []schemas.Step {
	t.Helper()
	policy, err := agents.Registry.Build("scripted", script, agents.Deps{Task: task.Public()})
	if err != nil {
		t.Fatal(err)
	}
	e := realEnv(t, source, task, tooltest.Kit(t, nil))
	r, err := agents.Run(t.Context(), agents.Config{Env: e, Policy: policy, Task: task, Limits: agents.Limits{MaxSteps: 60}})
	if err != nil {
		t.Fatal(err)
	}
	steps := slices.DeleteFunc(r.Steps, func(s schemas.Step) bool { return s.ToolCall == nil })
	for i, s := range steps {
		if s.Observation.IsError {
			t.Errorf("call %d, %s %s: %s", i+1, s.ToolCall.Name, s.ToolCall.Arguments, s.Observation.Text)
		}
	}
	return steps
}

// checkEpisode checks what all transcripts have in common, and the length of the good ones.
func checkEpisode(t *testing.T, good bool, steps []schemas.Step) {
	t.Helper()
	for i, s := range steps {
		if s.Reply == nil || s.Reply.Message == "" {
			t.Errorf("call %d has no message", i+1)
		}
	}
	last := steps[len(steps)-1]
	if last.ToolCall.Name != "submit" || last.State == nil || last.State.EvalPassed == nil || !*last.State.EvalPassed {
		t.Errorf("the episode ends with %s, without passing tests", last.ToolCall.Name)
	}
	if good && (len(steps) < 9 || len(steps) > 18) {
		t.Errorf("%d calls", len(steps))
	}
}

// checkShown checks that the texts appear, and that each value is new at its turn.
func checkShown(t *testing.T, want expectation, steps []schemas.Step) {
	t.Helper()
	check := func(turn int, text string) {
		if turn > len(steps) || !strings.Contains(steps[turn-1].Observation.Text, text) {
			t.Errorf("call %d does not show %q", turn, text)
		}
	}
	for _, s := range want.excerpts {
		check(s.turn, s.text)
	}
	for _, v := range want.values {
		check(v.turn, v.buggy)
		checkStop(t, v, steps[v.turn-1])
		for i, s := range steps[:v.turn-1] {
			if strings.Contains(s.Observation.Text, v.buggy) {
				t.Errorf("call %d already shows %q", i+1, v.buggy)
			}
		}
	}
}

// checkFixed makes the debugger's calls again in the fixed program: it stops at the same places, and
// the values are those of the fixed program.
func checkFixed(t *testing.T, source env.Source, task schemas.Task, file string, values []value) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var calls []policies.ScriptedCall
	if err := yaml.Unmarshal(text, &calls); err != nil {
		t.Fatal(err)
	}
	script := []any{map[string]any{"tool": "bash", "arguments": map[string]any{"command": "git apply <<'END'\n" + task.GoldPatch + "\nEND"}}}
	at := map[int]int{} // index of a call here, by its turn in the transcript
	for i, c := range calls[:values[len(values)-1].turn] {
		if c.Tool == "pdb" {
			at[i+1] = len(script)
			script = append(script, map[string]any{"tool": c.Tool, "arguments": c.Arguments})
		}
	}
	steps := play(t, source, task, map[string]any{"calls": script})
	for _, v := range values {
		s := steps[at[v.turn]]
		checkStop(t, v, s)
		if !strings.Contains(s.Observation.Text, v.fixed) {
			t.Errorf("fixed program: call %d does not show %q: %s", v.turn, v.fixed, s.Observation.Text)
		}
	}
}

func checkStop(t *testing.T, v value, s schemas.Step) {
	t.Helper()
	f := s.State.Frame
	if f == nil || fmt.Sprintf("%s:%d", f.File, f.Line) != v.stop {
		t.Errorf("call %d stops at %+v, not at %s", v.turn, f, v.stop)
	}
}
