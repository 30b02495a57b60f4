package learn

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// program returns a file with a function for each word. Its statements differ, but none differs from the
// others in all programs.
func program(words []string, random *rand.Rand) string {
	forms := strings.Fields("use(first,X) first=X[0] first+=len(X) return(X,first) del(X[1]) assert(X) X.sort() raise(X) first=not(X) yield(X,0)")
	var b strings.Builder
	for _, w := range words {
		fmt.Fprintf(&b, "def prepare(first):\n    \"\"\"Do it.\"\"\"\n")
		for k := range 3 {
			name := "data"
			if k == 1 {
				name = w
			}
			fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(forms[random.IntN(len(forms))], "X", name))
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// viewed returns the step in which an agent reads a whole file.
func viewed(file, text string) schemas.StepRow {
	lines := strings.Split(text, "\n")
	answer := fmt.Sprintf("%s, lines 1-%d of %d", file, len(lines), len(lines))
	for i, l := range lines {
		answer += fmt.Sprintf("\n %3d  %s", i+1, l)
	}
	return call("view", "view", fmt.Sprintf(`{"path":%q}`, file), answer, fmt.Sprintf("%s:1-%d", file, len(lines)))
}

func call(tool, category, arguments, answer string, targets ...string) schemas.StepRow {
	return schemas.StepRow{Source: "agent", ToolName: &tool, ToolCategory: &category, ArgumentsJSON: &arguments, Observation: &answer, Targets: targets}
}

// episode returns an episode of task i, in which the failing test mentions one word, and the statement
// with this word is the right one.
func episode(i int, policy string) (schemas.EpisodeRow, []schemas.StepRow) {
	random := rand.New(rand.NewPCG(7, uint64(i)))
	words := strings.Fields("anchor beacon castle dragon ember falcon garden harbor island jungle")
	random.Shuffle(len(words), func(a, b int) { words[a], words[b] = words[b], words[a] })
	right := random.IntN(len(words))
	line := 5*right + 4
	patch := fmt.Sprintf("diff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n@@ -%d +%d @@\n-    old\n+    new\n", line, line)
	group, resolved, yes := fmt.Sprintf("repo%d", i%6), policy == "oracle", true
	e := schemas.EpisodeRow{InstanceID: fmt.Sprintf("task%d", i), Repo: group, SplitGroup: &group, Policy: policy, AgentName: policy, GoldUsed: resolved}
	if resolved {
		e.Resolved, e.Patch = &yes, &patch
	}
	return e, []schemas.StepRow{
		call("eval", "eval", "{}", "The tests do not pass. 0 passed, 1 failed.\n  tests/test_app.py::test_it (failed)\n"),
		viewed("tests/test_app.py", fmt.Sprintf("def test_it():\n    assert run(%s) == 1", words[right])),
		viewed("app.py", program(words, random)),
		call("pdb", "pdb", fmt.Sprintf(`{"command":"b app.py:%d"}`, line), "Breakpoint 1 set"),
		call("view", "view", `{"path":"late.py"}`, "late.py, lines 1-1 of 1\n   1  late()", "late.py:1-1"),
	}
}

func study(t *testing.T, n int) *Study {
	t.Helper()
	s := NewStudy("oracle")
	for i := range n {
		for _, policy := range []string{"oracle", "baseline"} {
			e, rows := episode(i, policy)
			if err := s.Add(&e, rows); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// In these programs, only the failing test tells which statement is right. A model that has seen the
// choices of the oracle finds it in other repositories, and only then.
func TestOnlyTrueObservationsTeach(t *testing.T) {
	r, err := study(t, 120).Measure(t.Context(), []int{10, 1000}, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	if r.Trajectories != 120 || r.Unusable != 0 || r.Groups != 6 || len(r.Columns) != 3 {
		t.Errorf("got %+v", r)
	}
	kinds := []string{}
	for _, c := range r.Columns {
		kinds = append(kinds, c.Kind)
		want := 30 // statements, all of which were shown before the breakpoint
		if c.Kind == Pooled {
			want = 31
		}
		if c.States != 120 || c.Tasks != 120 || c.Candidates != want || c.Shown < 0.999 {
			t.Errorf("got %+v, want 120 states with %d candidates", c, want)
		}
	}
	if !slices.Equal(kinds, []string{"baseline", "oracle", Pooled}) {
		t.Errorf("got kinds %q", kinds)
	}
	hits := map[string]float64{}
	for _, row := range r.Rows {
		for i := range r.Columns {
			if row.Hits[i] != nil {
				hits[row.Name] += row.Hits[i].Mean / float64(len(r.Columns))
			}
		}
	}
	for i, h := range r.Rows[1].Hits {
		if h.Mean < 0.9 || h.Low > h.Mean || h.High < h.Mean {
			t.Errorf("column %s: the model is right in %+v of the states, want at least 0.9", r.Columns[i].Kind, h)
		}
	}
	if r.Rows[0].Trained != 10 || r.Rows[1].Trained != 80 || r.Rows[1].Asked != 1000 {
		t.Errorf("got rows %+v", r.Rows[:2])
	}
	for _, name := range []string{string(shuffledChoices), string(mixedObservations), "random", "traceback", "entry of last read"} {
		if hits[name] > 0.3 {
			t.Errorf("%s is right in %.2f of the states, want about 1/30", name, hits[name])
		}
	}
	if own := hits["the agent itself"]; own < 0.66 || own > 0.67 || hits["Ochiai"] != 0 {
		t.Errorf("the agents chose the right line in %.2f of the states, want 2/3 (no agent chooses in pooled states); Ochiai %.2f", own, hits["Ochiai"])
	}
}

// A study of the same episodes gives the same report.
func TestStudiesAreReproducible(t *testing.T) {
	var got []string
	for range 2 {
		r, err := study(t, 12).Measure(t.Context(), []int{5}, 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	if got[0] != got[1] {
		t.Errorf("got\n%s\nand then\n%s", got[0], got[1])
	}
}

func TestStatements(t *testing.T) {
	text := `import os
class Box:
    """A box.

    def not_code(): pass
    """
    size = 3

    @property
    def area(self, scale=(1,
                          2)):
        # A comment.
        if (self.size > 2 and
                scale[0] != "a#b"):
            return self.width \
                * 2
        else:
            raise ValueError('it\'s')
        try:
            x = f"{scale}"
        except KeyError:
            pass

total = Box()`
	lines := map[int]string{40: "        return 1"}
	for i, l := range strings.Split(text, "\n") {
		lines[i+1] = l
	}
	var got []string
	for _, s := range statements("a.py", lines) {
		at := "module"
		if s.function != nil {
			at = fmt.Sprintf("%s.%s %d/%d", s.function.class, s.function.name, s.place, s.function.statements)
		}
		got = append(got, fmt.Sprintf("%d-%d %s %s", s.first, s.last, kindOfStatement(s.tokens), at))
	}
	want := []string{
		"7-7 assign module", "13-14 if Box.area 0/6", "15-16 return Box.area 1/6", "18-18 raise Box.area 2/6",
		"20-20 assign Box.area 3/6", "21-21 except Box.area 4/6", "22-22 pass Box.area 5/6", "24-24 assign module", "40-40 return module",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWords(t *testing.T) {
	if got, want := words("self.parseHTMLBody(max_size) # it"), []string{"parsehtmlbody", "parse", "htmlbody", "max_size", "max", "size"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The failing test, its error, its traceback and Ochiai scores are read from the answers.
func TestFailureIsRead(t *testing.T) {
	r := newReader()
	r.read([]schemas.StepRow{
		{Source: "user", Message: "Totals are wrong."},
		call("eval", "eval", "{}", `The tests do not pass. 0 passed, 1 failed.
  tests/test_app.py::TestTotal::test_sum[a.b] (failed)

_____________ TestTotal.test_sum _____________
tests/test_app.py:3: in test_sum
    total([1])
app.py:7: in total
    return add(x)
lib/add.py:2: KeyError
E   KeyError: 'price'
_____________ TestTotal.test_other _____________
other.py:9: in f
`),
		viewed("tests/test_app.py", "class TestTotal:\n    def test_sum(self):\n        total([1])\n    def test_other(self):\n        unrelated()"),
		call("bash", "bash", `{"command":"rank"}`, "0.926 app.py:7\n0.100 lib/add.py:2\n"),
	})
	c := r.state().failure
	if c.exception != "KeyError" || !c.test["total"] || c.test["unrelated"] || !c.message["price"] || !c.message["totals"] {
		t.Errorf("got %+v", c)
	}
	if want := []line{{"app.py", 7}, {"lib/add.py", 2}}; !slices.Equal(c.frames, want) {
		t.Errorf("got frames %v, want %v", c.frames, want)
	}
	if c.ochiai[line{"app.py", 7}] != 0.926 || len(c.ochiai) != 2 {
		t.Errorf("got scores %v", c.ochiai)
	}
}
