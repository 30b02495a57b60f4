package policies_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/oracle/write"
	"github.com/tracesmith/tracesmith/schemas"
)

// otherNames renames the identifiers of the shop, except those that Python's own types have, because the oracle knows them.
// The new names have the same lengths, but the files have another order.
var otherNames = map[string]string{
	"shop": "mall", "cart": "tray", "Cart": "Tray", "prices": "tariff", "price": "worth", "discount": "kickback", "rounded": "clipped",
	"customer": "occupant", "total": "whole", "amount": "figure", "rate": "part", "payable": "residue", "cents": "units", "LIMIT": "BOUND",
	"member": "junior", "members": "juniors", "guest": "alien", "first": "prior", "second": "latest", "test_cart": "test_tray",
	"test_member": "test_junior", "test_limit": "test_bound", "test_guest": "test_alien", "test_deposit": "test_voucher", "test_members": "test_juniors",
}

// oracleRuns makes each episode once.
type oracleRuns struct {
	dir  string // for paired traces
	done map[string]oracleRun
}

// of returns the episode with a bug of the shop.
func (all *oracleRuns) of(t *testing.T, bug int) oracleRun {
	t.Helper()
	return all.renamed(t, bug, strings.Clone)
}

// renamed returns the episode with a bug of the shop whose texts rename changes.
func (all *oracleRuns) renamed(t *testing.T, bug int, rename func(string) string) oracleRun {
	t.Helper()
	b := shopBugs[bug]
	key := b.name + " of " + rename("shop")
	if _, ok := all.done[key]; !ok {
		tree, task := shopTask(t, rename, b.file, b.line, b.bug, b.failing)
		all.done[key] = newOracleRun(t, all.dir, tree, task, nil)
	}
	return all.done[key]
}

var (
	word = regexp.MustCompile(`[A-Za-z_]\w*`)
	// codeInText matches code in a message: in backquotes, or the path of a file.
	codeInText = regexp.MustCompile("`[^`]*`|[\\w./]+\\.py")
)

func rename(code string) string {
	return word.ReplaceAllStringFunc(code, func(w string) string {
		if other, ok := otherNames[w]; ok {
			return other
		}
		return w
	})
}

// turn is what the oracle decides.
type turn struct {
	Message string
	Claims  []schemas.Claim
	Call    string
}

// turnsOf returns the turns of an episode, with each piece of code changed.
func turnsOf(t *testing.T, result agents.Result, change func(code string) string) (out []turn) {
	t.Helper()
	for _, s := range result.Steps {
		if s.Reply == nil {
			continue
		}
		x := turn{Message: codeInText.ReplaceAllStringFunc(s.Reply.Message, change)}
		for _, c := range s.Reply.Claims {
			for _, text := range []*string{&c.Caller, &c.Expression, &c.File, &c.Function, &c.Message, &c.Other, &c.Reason, &c.Test, &c.Text, &c.Value} {
				*text = change(*text)
			}
			x.Claims = append(x.Claims, c)
		}
		for _, call := range s.Reply.Calls {
			x.Call += call.Name + " " + change(string(call.Arguments))
		}
		out = append(out, x)
	}
	return out
}

// checkWithOtherNames checks that the oracle does the same in a program with other names.
func checkWithOtherNames(t *testing.T, all *oracleRuns) {
	for _, bug := range []int{2, 4} {
		want := turnsOf(t, all.of(t, bug).result, rename)
		got := turnsOf(t, all.renamed(t, bug, rename).result, strings.Clone)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", shopBugs[bug].name, diff)
		}
	}
}

// checkWithAnotherFix checks that the oracle's texts do not depend on the fix: with the fix and the trace of another bug, or
// of another program, the oracle does something else, but what it says was shown and is true.
func checkWithAnotherFix(t *testing.T, all *oracleRuns) {
	for name, c := range map[string]struct {
		run, other oracleRun
		turns      int // at least
	}{
		"another test fails":  {all.of(t, 1), all.of(t, 4), 8},
		"the same test fails": {all.of(t, 6), all.of(t, 3), 8},
		"another program":     {all.of(t, 1), all.renamed(t, 2, rename), 3},
	} {
		deps := c.other.gold()
		deps.Task = c.run.task
		result := c.run.episode(t, "oracle", nil, deps)
		turns := turnsOf(t, result, strings.Clone)
		if len(turns) < c.turns || cmp.Equal(turns, turnsOf(t, c.run.result, strings.Clone)) {
			t.Errorf("%s: %d turns, or the same ones as with the right fix", name, len(turns))
		}
		found, _ := auditedOf(t, c.run.task, c.run.tree, result.Tools, result.Steps).alarms()
		_, rows := rowsOf(t, c.run.task, result.Steps)
		if wrong := claimsWith(t, schemas.ClaimFalse, rows); len(found)+len(wrong) > 0 {
			t.Errorf("%s: names that were not seen: %q; false claims: %q", name, found, wrong)
		}
		checkOptions(t, c.run.task, result)
		if t.Failed() {
			printSteps(t, result.Steps)
		}
	}
}

// checkOptions checks that each reply is one of those that package write, which does not know the fix, derives from the
// steps before it.
func checkOptions(t *testing.T, task schemas.Task, result agents.Result) {
	t.Helper()
	for i, s := range result.Steps {
		if s.Reply == nil {
			continue
		}
		notes := write.Read(&agents.Transcript{Task: task.Public(), Tools: result.Tools, Steps: result.Steps[:i]})
		got := turnsOf(t, agents.Result{Steps: result.Steps[i : i+1]}, strings.Clone)
		if !slices.ContainsFunc(notes.Options(), func(o write.Option) bool {
			reply := o.Reply(notes.Calls)
			return cmp.Equal(got, turnsOf(t, agents.Result{Steps: []schemas.Step{{Reply: &reply}}}, strings.Clone))
		}) {
			t.Errorf("the oracle took step %d, which package write does not offer: %+v", s.Index, got)
		}
	}
}

// checkReplayed checks that the calls of an episode give the same answers in a new sandbox.
func checkReplayed(t *testing.T, run oracleRun) {
	recording := recordingOf(run.result)
	got := run.episode(t, "replay", map[string]any{"from": "run"}, agents.Deps{Task: run.task, Recording: recording})
	if calls := len(recording.Turns); got.Compared != calls || calls < 10 || len(got.Diverged) > 0 {
		t.Errorf("%d of %d answers were compared, and those of steps %v differ", got.Compared, calls, got.Diverged)
	}
}

// checkSwappedDiagnoses checks that the auditor accepts a diagnosis in its episode and refuses it in those with other bugs.
func checkSwappedDiagnoses(t *testing.T, all *oracleRuns) {
	var list []diagnosed
	for i, bug := range shopBugs {
		run := all.of(t, i)
		e, rows := rowsOf(t, run.task, run.result.Steps)
		d := diagnosed{name: bug.bug, episode: e, rows: rows, tools: run.result.Tools, names: audited{files: pythonFiles(t, run.tree)}.names()}
		d, ok := d.diagnose()
		if !ok {
			t.Fatalf("%s: no diagnosis", bug.name)
		}
		list = append(list, d)
	}
	for _, d := range list {
		if found := d.doubts(t, d); len(found) > 0 {
			t.Errorf("%q: %q", d.text, found)
		}
		for _, other := range list {
			if other.name != d.name && len(d.doubts(t, other)) == 0 {
				t.Errorf("with the bug %q, the auditor accepts %q", d.name, other.text)
			}
		}
	}
}
