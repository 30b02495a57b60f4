package metrics

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tracesmith/tracesmith/schemas"
)

// cart is the file of the fixtures, with a bug in lines 15 and 19.
const cart = `import math


class Cart:
    def __init__(self):
        self.items = []

    def add(self, price, count):
        self.items.append((price, count))

    def total(self):
        result = 0
        for price, count in self.items:
            result += price * count
        return round(result)


def tax(amount):
    return amount * 0.2
`

// cartFix changes line 15 and inserts a line between lines 18 and 19.
const cartFix = `diff --git a/shop/cart.py b/shop/cart.py
index 1111111..2222222 100644
--- a/shop/cart.py
+++ b/shop/cart.py
@@ -12,8 +12,9 @@ class Cart:
         result = 0
         for price, count in self.items:
             result += price * count
-        return round(result)
+        return round(result, 2)
 
 
 def tax(amount):
+    amount = max(0, amount)
     return amount * 0.2
`

// cartEdit replaces line 15 by two lines.
const cartEdit = `--- a/shop/cart.py
+++ b/shop/cart.py
@@ -12,7 +12,8 @@
         result = 0
         for price, count in self.items:
             result += price * count
-        return round(result)
+        result = round(result, 2)
+        return result
 
 
 def tax(amount):
`

func cartLines(first, last int, format string) string {
	var b strings.Builder
	for n, line := range strings.Split(cart, "\n")[first-1 : last] {
		fmt.Fprintf(&b, format, first+n, line)
	}
	return b.String()
}

// row returns a step of the agent.
func row(tool string, args map[string]any, observation string, targets ...string) schemas.StepRow {
	raw, _ := json.Marshal(args)
	call := &schemas.ToolCall{Name: tool, Arguments: raw}
	r := schemas.StepRow{
		Source: "agent", ToolName: &tool, ArgumentsJSON: new(string(raw)), Observation: &observation, Targets: targets,
		ToolCategory: new(Category(tool)), ActionKind: Kind(call), IsError: new(false),
	}
	if c := PDBCommand(call); c != "" {
		r.PDBCommand = &c
	}
	return r
}

func viewRow(file string, first, last int, format string) schemas.StepRow {
	return row("view", map[string]any{"path": file, "start": first, "end": last},
		fmt.Sprintf("%s, lines %d-%d of 19\n", file, first, last)+format, fmt.Sprintf("%s:%d-%d", file, first, last))
}

func pdbRow(command, observation string, line int) schemas.StepRow {
	r := row("pdb", map[string]any{"command": command}, observation)
	r.BreakpointsJSON = new("[]")
	if line > 0 {
		r.FrameFile, r.FrameLine, r.FrameFunction, r.DebuggerEvent = new("shop/cart.py"), new(int32(line)), new("total"), new("line")
	}
	return r
}

func numberRows(rows []schemas.StepRow) []schemas.StepRow {
	for i := range rows {
		rows[i].StepIndex = int32(i)
	}
	return rows
}

func mustPatch(t testing.TB, text string) *Patch {
	t.Helper()
	p, err := ParsePatch([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

func seek(rows []schemas.StepRow, evidence Evidence) Seeking {
	return Seek(Read(rows, "/testbed"), evidence)
}

func cartEvidence(t testing.TB) Evidence {
	return Evidence{
		Gold: mustPatch(t, cartFix), Patch: mustPatch(t, "diff --git a/shop/cart.py b/shop/cart.py\n"+cartEdit),
		Functions: map[string][]Function{"shop/cart.py": Functions(cart)},
	}
}

// debugged is an episode that reads the code, debugs it and edits it.
func debugged() []schemas.StepRow {
	moved := strings.ReplaceAll(cartLines(17, 19, " %4d  %s\n"), "   19 ", "   20 ")
	moved = strings.ReplaceAll(strings.ReplaceAll(moved, "   18 ", "   19 "), "   17 ", "   18 ")
	eval := row("eval", map[string]any{}, "3 passed")
	eval.ScoreAfter, eval.TestsPassed, eval.TestsFailed = new(1.0), new(int32(3)), new(int32(0))
	return numberRows([]schemas.StepRow{
		row("grep", map[string]any{"pattern": "round"}, "1 match in 1 file\n\nshop/cart.py\n   15:         return round(result)\n", "shop/cart.py"),
		viewRow("shop/cart.py", 11, 15, cartLines(11, 15, " %4d  %s\n")),
		pdbRow("b shop/cart.py:13", "Breakpoint 1 set at shop/cart.py:13", 0),
		pdbRow("c", "Breakpoint 1 hit.\nCurrent frame: shop/cart.py:13 in total\n"+strings.TrimSuffix(cartLines(10, 16, "%4d\t%s\n"), "\n"), 13),
		pdbRow("p result ;; p reslt", "0\n*** NameError: name 'reslt' is not defined\nCurrent frame: shop/cart.py:13 in total", 13),
		pdbRow("p result", "0\nCurrent frame: shop/cart.py:13 in total", 13),
		row("edit", map[string]any{"path": "shop/cart.py", "start": 15, "new_code": "..."}, "Replaced line 15.\n"+cartEdit, "shop/cart.py:15-16"),
		viewRow("shop/cart.py", 18, 20, moved),
		eval,
		row("submit", map[string]any{"summary": "The total was rounded to whole numbers."}, "Submitted."),
	})
}

// The expected numbers are computed by hand. The fix concerns lines 15, 18 and 19 of one file, and
// the functions total and tax. The steps show line 15; 11-15; 10-16; and, after the edit has moved
// them, 17-19.
func TestSeekOfADebuggedEpisode(t *testing.T) {
	got := seek(debugged(), cartEvidence(t))
	gold := got.Gold
	got.Gold, got.steps = nil, nil
	want := Seeking{
		Redundancy:       new(6.0 / 16), // 16 lines shown; 1 and 5 of them again
		BreakpointsValid: new(1.0), BreakpointsHit: new(1.0),
		DeadInspections: new(2.0 / 3), // reslt, and result for the second time
		InvalidCalls:    new(0.0), LongestCommandRun: new(int32(2)), LongestCallRun: new(int32(1)), BlindEdits: new(int32(0)),
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Seeking{})); diff != "" {
		t.Error(diff)
	}
	wantGold := &GoldSeeking{
		File: &Level{1, 1, 1, new(1.0), new(1.0), new(1.0), new(1.0), new(1.0), new(int32(1)), new(1.0)},
		// 2 of 2 functions; the first from step 1, the second from step 8
		Function: &Level{2, 2, 2, new(1.0), new(1.0), new(1.0), new(1.0), new(1.0), new(int32(1)), new((7*0.5 + 3) / 10)},
		// 3 of 3 lines among 10 different ones: P = 0.3, R = 1
		Line:         &Level{3, 10, 3, new(1.0), new(0.3), new(0.375 / 1.075), new(0.6 / 1.3), new(1.5 / 2.2), new(int32(1)), new((7.0/3 + 3) / 10)},
		EvidenceDrop: new(2.0 / 3), // only line 15 was edited
		// The patch changes the function total and line 15: F1 = 2·1/(2+1) and 2·1/(3+1).
		Declared: &Declared{new(1.0), new(2.0 / 3), new(0.5), new(1 + 2.0/3 + 0.5), new(1.0), new(1 / (1 + 0.6309297535714574))},
		RootHit:  new(true), RootLineHit: new(false), BreakpointsToRoot: new(int32(1)), StepsToRoot: new(int32(4)), BreakpointDistance: new(int32(2)),
		UsefulSteps: new(0.2), // steps 1 and 8
	}
	if diff := cmp.Diff(wantGold, gold, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Error(diff)
	}
	counts := [][3]int{}
	for _, c := range seek(debugged(), cartEvidence(t)).steps {
		counts = append(counts, [3]int{c.shown, c.new, c.found})
	}
	if diff := cmp.Diff([][3]int{{1, 1, 1}, {5, 4, 0}, {}, {7, 2, 0}, {}, {}, {}, {3, 3, 2}, {}, {}}, counts); diff != "" {
		t.Error(diff)
	}
}

// Lines that the final answer quotes are used, even if the agent did not edit them.
func TestQuotedEvidenceIsUsed(t *testing.T) {
	rows := debugged()
	rows[9] = row("submit", map[string]any{"summary": "I fixed the total. tax returns `return amount * 0.2`, which is right."}, "Submitted.")
	if drop := seek(rows, cartEvidence(t)).Gold.EvidenceDrop; *drop != 1.0/3 {
		t.Errorf("evidence drop %v", *drop)
	}
}

// Without the repository, functions are unknown, and what depends on them is null.
func TestSeekWithoutFunctions(t *testing.T) {
	evidence := cartEvidence(t)
	evidence.Functions = nil
	g := seek(debugged(), evidence).Gold
	if g.Function != nil || g.RootHit != nil || g.BreakpointDistance != nil || g.Declared.Function != nil || g.Declared.Sum != nil {
		t.Errorf("unknown functions: %+v, %+v", g, g.Declared)
	}
	if g.Line == nil || *g.Line.Recall != 1 || g.RootLineHit == nil {
		t.Errorf("lines do not need functions: %+v", g)
	}
	evidence.Gold = nil
	if s := seek(debugged(), evidence); s.Gold != nil || s.Redundancy == nil {
		t.Error("without a fix, only the metrics that need it are null")
	}
}

// A seeker hands over lines 11-15 and the value of result; the solver edits line 15.
func TestSeekOfAHandover(t *testing.T) {
	rows := numberRows([]schemas.StepRow{
		viewRow("shop/cart.py", 8, 19, cartLines(8, 19, " %4d  %s\n")),
		row("handover", map[string]any{
			"cause": "total rounds", "cause_steps": []int{0},
			"files": []any{map[string]any{"path": "shop/cart.py", "start": 11, "end": 15, "step": 0}, map[string]any{"path": "shop/cart.py", "start": 8, "step": 0}},
		}, "Handed over."),
	})
	evidence := cartEvidence(t)
	evidence.Patch = nil
	s := seek(rows, evidence)
	want := &PackSeen{
		File:       &Level{1, 1, 1, new(1.0), new(1.0), new(1.0), new(1.0), new(1.0), nil, nil},
		Function:   &Level{2, 2, 1, new(0.5), new(0.5), new(0.5), new(0.5), new(0.5), nil, nil},                                                             // total and add
		Line:       &Level{3, 6, 1, new(1.0 / 3), new(1.0 / 6), new(1.25 / 18 / (0.25/6 + 1.0/3)), new(2.0 / 9), new(5.0 / 18 / (4.0/6 + 1.0/3)), nil, nil}, // line 15
		Sufficient: new(false),
	}
	if diff := cmp.Diff(want, s.Gold.Pack, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Error(diff)
	}
	if *s.Gold.EvidenceDrop != 2.0/3 { // lines 18 and 19 were seen and not handed over
		t.Errorf("evidence drop %v", *s.Gold.EvidenceDrop)
	}
	// Without a patch, the handover is what the agent declares: total comes first.
	if d := s.Gold.Declared; *d.File != 1 || *d.Function != 0.5 || *d.Line != 2.0/9 || *d.FunctionRank != 1 {
		t.Errorf("declared %+v", d)
	}
	if !strings.Contains(*s.Pack, "return round(result)") || strings.Contains(*s.Pack, "self.items = []") {
		t.Errorf("pack: %s", *s.Pack)
	}
	rows[1] = row("handover", map[string]any{"files": []any{map[string]any{"path": "shop/cart.py", "start": 15, "end": 19}}}, "Handed over.")
	if s := seek(rows, evidence); !*s.Gold.Pack.Sufficient || *s.Gold.EvidenceDrop != 0 {
		t.Errorf("a pack with all lines: %+v", s.Gold)
	}
	rows[1].IsError = new(true)
	if s := seek(rows, evidence); s.Gold.Pack != nil || s.Pack != nil || s.Gold.Declared != nil {
		t.Error("a refused handover counts")
	}
}

// Sanity rules: recall never falls, printing everything has recall 1 and precision |G|/|all|, and
// blind edits have recall 0.
func TestSanityRules(t *testing.T) {
	all := []schemas.StepRow{viewRow("shop/cart.py", 1, 19, cartLines(1, 19, " %4d  %s\n")), row("bash", map[string]any{"command": "cat other.py"}, "x = 1\n")}
	g := seek(all, cartEvidence(t)).Gold
	if *g.Line.Recall != 1 || *g.Line.Precision != 3.0/20 || *g.Function.Recall != 1 || *g.Function.Precision != 2.0/4 || *g.File.Precision != 1.0/2 {
		t.Errorf("printing all: %+v %+v %+v", g.Line, g.Function, g.File)
	}
	blind := debugged()[6:7]
	s := seek(blind, cartEvidence(t))
	if *s.Gold.Line.Recall != 0 || *s.Gold.File.Recall != 0 || s.Gold.Line.FirstContact != nil || *s.BlindEdits != 1 || s.Gold.Line.Precision != nil || s.Gold.EvidenceDrop != nil {
		t.Errorf("a blind edit: %+v, %+v", s.Gold, s.Gold.Line)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var rows []schemas.StepRow
		for range 1 + r.IntN(12) {
			first := 1 + r.IntN(19)
			last := first + r.IntN(20-first)
			rows = append(rows, viewRow("shop/cart.py", first, last, cartLines(first, last, " %4d  %s\n")))
		}
		before := 0.0
		for n := 1; n <= len(rows); n++ {
			recall := *seek(rows[:n], cartEvidence(t)).Gold.Line.Recall
			if recall < before {
				t.Fatalf("recall falls from %v to %v", before, recall)
			}
			before = recall
		}
		one := seek(rows, cartEvidence(t))
		r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		two := seek(rows, cartEvidence(t))
		for _, s := range []*Seeking{&one, &two} { // the metrics that the order may change
			s.steps = nil
			for _, l := range []*Level{s.Gold.File, s.Gold.Function, s.Gold.Line} {
				l.FirstContact, l.RecallArea = nil, nil
			}
			s.Gold.UsefulSteps, s.LongestCallRun = nil, nil
		}
		if diff := cmp.Diff(one, two, cmpopts.IgnoreUnexported(Seeking{})); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestGoldLines(t *testing.T) {
	gold := newGoldSet(*mustPatch(t, cartFix+`diff --git a/shop/new.py b/shop/new.py
new file mode 100644
index 0000000..2222222
--- /dev/null
+++ b/shop/new.py
@@ -0,0 +1 @@
+x = 1
diff --git a/tests/test_cart.py b/tests/test_cart.py
index 1111111..2222222 100644
--- a/tests/test_cart.py
+++ b/tests/test_cart.py
@@ -1 +1 @@
-a
+b
diff --git a/end.py b/end.py
index 1111111..2222222 100644
--- a/end.py
+++ b/end.py
@@ -3,2 +3,3 @@
 a
 b
+c
`), map[string][]Function{"shop/cart.py": Functions(cart)})
	lines := map[string][]int{}
	for name, f := range gold.files {
		lines[name] = nil
		for n := range f.lines {
			lines[name] = append(lines[name], n)
		}
		slices.Sort(lines[name])
	}
	// An insertion concerns the lines before and after it, unless it is at the end of the file.
	if diff := cmp.Diff(map[string][]int{"shop/cart.py": {15, 18, 19}, "shop/new.py": nil, "end.py": {4}}, lines); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]bool{"shop/cart.py::Cart.total": true, "shop/cart.py::tax": true}, gold.functions); diff != "" {
		t.Error(diff)
	}
	if newGoldSet(*mustPatch(t, ""), nil) != nil {
		t.Error("an empty patch gives something to compare with")
	}
}
