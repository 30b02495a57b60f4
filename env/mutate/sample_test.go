package mutate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// manySites returns sites of ten files with five functions each, most of them of operator a1 and few of m1.
func manySites() []Site {
	var out []Site
	for i := range 2000 {
		op := "a1"
		switch {
		case i%50 == 0:
			op = "m1"
		case i%5 == 0:
			op = "k1"
		}
		out = append(out, Site{ID: fmt.Sprintf("%016x", i), File: fmt.Sprintf("f%d.py", i%10), Func: fmt.Sprintf("g%d", i/10%5),
			Operator: op, Line: i + 1, EndLine: i + 1, Start: 10 * i, End: 10*i + 2})
	}
	return out
}

func TestSamplesDependOnTheirSeedOnly(t *testing.T) {
	sites := manySites()
	one := Sample(sites, 50, 7)
	rand.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	if diff := cmp.Diff(one, Sample(sites, 50, 7)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(one, Sample(sites, 50, 8)) {
		t.Error("another seed gives the same sample")
	}
	if cmp.Diff(one[:20], Sample(sites, 20, 7)) != "" {
		t.Error("a shorter sample is not a prefix of a longer one")
	}
}

func TestRareOperatorsAreSampledAndPreferredOnesMore(t *testing.T) {
	count := map[string]int{}
	for _, s := range Sample(manySites(), 60, 1) {
		count[s.Operator]++
	}
	if count["m1"] < 18 || count["m1"] <= count["a1"] || count["k1"] < 5 || count["a1"] < 5 {
		t.Errorf("%v: m1 has 2 of 100 sites and three times the weight", count)
	}
}

// Every operator with a weight exists, and its share of a sample follows the weight.
func TestOperatorsAreSampledByWeight(t *testing.T) {
	var sites []Site
	total := 0.0
	operators := start(t, "testdata/shop").Operators()
	known := map[string]bool{}
	for _, op := range operators {
		known[op.ID] = true
		total += max(weights[op.ID], 1)
		for i := range 400 {
			sites = append(sites, Site{ID: fmt.Sprintf("%s-%d", op.ID, i), File: "m.py", Operator: op.ID, Start: len(sites)})
		}
	}
	for id, weight := range weights {
		if !known[id] || weight <= 1 {
			t.Errorf("operator %s: known %v, weight %v", id, known[id], weight)
		}
	}
	const n = 3500
	count := map[string]int{}
	for _, s := range Sample(sites, n, 1) {
		count[s.Operator]++
	}
	for _, op := range operators {
		want := n * max(weights[op.ID], 1) / total
		if got := float64(count[op.ID]); math.Abs(got-want) > 4*math.Sqrt(want) { // four standard deviations
			t.Errorf("%s has %v of %d sites, want about %.0f", op.ID, got, n, want)
		}
	}
}

// unlikely are changes that hardly anybody would write.
var unlikely = []string{"e1 `ValueError` -> `TypeError`", "a4 `+=` -> `-=`", "a1 `*` -> `//`", "a2 `\"ü\"` -> `str(a - b)`; `str(a - b)` -> `\"ü\"`"}

// A change is obvious if a reader notices it without understanding the code.
func TestObviousChangesAreMarked(t *testing.T) {
	b := start(t, "testdata/shop")
	obvious, others := 0, 0
	for _, s := range b.sites("stock.py", "odd.py") {
		want := slices.Contains([]string{"d1", "d2", "d3", "d4"}, s.Operator) || s.Operator == "d5" && strings.HasSuffix(s.Note, "-> `None`") ||
			s.Operator == "r5" && strings.HasSuffix(s.Note, "-> `False`") || slices.Contains([]string{"r5", "m2", "o2"}, s.Operator) && strings.HasSuffix(s.Note, "-> ``") && !strings.HasPrefix(s.Note, "`` ->")
		want = want || slices.Contains(unlikely, s.Operator+" "+s.Note)
		if s.Obvious != want && s.Operator != "k1" { // k1: the next test
			t.Errorf("%s %s: obvious is %v", s.Operator, s.Note, s.Obvious)
		}
		if want {
			obvious++
		} else {
			others++
		}
	}
	if obvious < 5 || others < 20 {
		t.Errorf("only %d obvious sites and %d others", obvious, others)
	}
}

// Changes that hardly anybody would write are obvious, and similar ones that people make are not.
func TestUnlikelyChangesAreObvious(t *testing.T) {
	b := start(t, "testdata/shop")
	for _, c := range []struct {
		operator, line, after string
		obvious               bool
	}{
		{"k1", "return len(a) == 3", "== 4", true}, {"k1", "return len(a) > 0", "> 1", false}, {"k1", "n = 1", "n = 2", false}, {"k1", "return 10", "11", true},
		{"k1", "return n + 1", "return n\n", false}, {"k1", "return n + 1", "n + 2", true},
		{"i1", "return a[-1]", "a[-2]", true}, {"i1", "return a[-1]", "a[0]", false}, {"i1", "return a[1]", "a[0]", false},
		{"i2", "return a[:n]", "a[1:n]", true}, {"i2", "return a[:n]", "a[:n - 1]", false}, {"i2", "return a[n:]", "a[n:-1]", true},
		{"a1", "return a | n", "a ^ n", true}, {"a1", "return a | n", "a & n", false}, {"a1", "return len(a) + n", "len(a) - n", false},
		{"a2", "return a << n", "n << a", true}, {"a2", "return a - n", "n - a", false},
		{"a5", "return a[:-1]", "a[:1]", true}, {"a5", "return not a", "return a\n", false},
		{"k2", "return a is True", "is False", true}, {"k2", "return g(n, strict=True)", "strict=False", false},
		{"f2", "return g(x=a)", "g()", true}, {"f2", "return g(n, x=a)", "g(n)", false},
		{"f4", "return a.lower()", "a.upper()", true}, {"f4", "return a.find(n)", "a.rfind(n)", false},
		{"e1", "raise KeyError(a)", "IndexError", true}, {"t1", "return a.encode()", "return a\n", true},
	} {
		if err := b.sb.WriteFile(t.Context(), workdir+"/case.py", []byte("def f(a, n):\n    "+c.line+"\n    return n\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, s := range b.sites("case.py") {
			if s.Operator == c.operator && strings.Contains(changedLines(b.apply(s).Patch), c.after) {
				found = true
				if s.Obvious != c.obvious {
					t.Errorf("%s, %s -> %s: obvious is %v", c.operator, c.line, c.after, s.Obvious)
				}
			}
		}
		if !found {
			t.Errorf("%s does not change %s to %s", c.operator, c.line, c.after)
		}
	}
}

// The same change of a function and of a copy with other names has the same shape.
func TestShapesIgnoreNames(t *testing.T) {
	b := start(t, "testdata/shop")
	text := "def low(a, b):\n    best = a.size\n    return best < b\n\n\ndef floor(x, y):\n    least = x.size\n    return least < y\n\n\ndef odd(a, b):\n    best = a.weight\n    return best < b\n"
	if err := b.sb.WriteFile(t.Context(), workdir+"/copies.py", []byte(text), 0); err != nil {
		t.Fatal(err)
	}
	shapes := map[string]string{}
	for _, s := range b.sites("copies.py") {
		if s.Operator == "r1" {
			shapes[s.Func] = b.apply(s).Shape
		}
	}
	if len(shapes) != 3 || shapes["low"] == "" || shapes["low"] != shapes["floor"] || shapes["low"] == shapes["odd"] {
		t.Errorf("%v", shapes)
	}
}

// without returns the sites of a composition except one.
func without(c Composition, i int) []Site {
	return slices.Delete(slices.Clone(c.Sites), i, i+1)
}

func TestCompositionsShareAScopeAndDoNotOverlap(t *testing.T) {
	sites := manySites()[:300]
	sites = append(sites, Site{ID: "ffffffffffffffff", File: "f0.py", Func: "g0", Operator: "r5", Start: 0, End: 5000}) // overlaps other sites
	calls := map[string][]string{"f1.py::g1": {"f2.py::g2", "f1.py::g1"}}
	spec := ComposeSpec{Sites: sites, Parts: 3, N: 60, Seed: 5, Calls: calls}
	got := Compose(spec)
	if len(got) != 60 || cmp.Diff(got, Compose(spec)) != "" {
		t.Fatalf("%d compositions, want 60 and the same in a second call", len(got))
	}
	scopes, seen := map[string]int{}, map[string]bool{}
	for _, c := range got {
		scopes[c.Scope]++
		if len(c.Sites) != 3 || seen[setKey(c.Sites)] {
			t.Errorf("%v is a duplicate or does not have three sites", c)
		}
		seen[setKey(c.Sites)] = true
		for i, s := range c.Sites {
			if slices.ContainsFunc(without(c, i), s.overlaps) || len(without(c, i)) != 2 || slices.Contains(without(c, i), s) {
				t.Errorf("%v overlaps", c)
			}
			first := c.Sites[0]
			if c.Scope != "chain" && s.File != first.File || c.Scope == "function" && s.Func != first.Func {
				t.Errorf("%v is not in one %s", c, c.Scope)
			}
		}
	}
	if scopes["function"] == 0 || scopes["file"] == 0 || scopes["chain"] == 0 {
		t.Errorf("scopes %v", scopes)
	}
}

// A composition is one patch, and leaving out any of its sites gives a different bug.
func TestACompositionIsOnePatch(t *testing.T) {
	b := start(t, "testdata/shop")
	applied := 0
	for _, c := range Compose(ComposeSpec{Sites: b.sites("stock.py", "odd.py"), Parts: 3, N: 40, Seed: 1}) {
		whole, err := b.Apply(t.Context(), c.Sites)
		if err != nil {
			t.Logf("%v: %v", c.Sites, err)
			continue
		}
		applied++
		file := c.Sites[0].File
		after := b.patched(file, whole.Patch)
		for i := range c.Sites {
			part := b.apply(without(c, i)...)
			if string(b.patched(file, part.Patch)) == string(after) || part.BodyHash == whole.BodyHash {
				t.Errorf("part %d of %v changes nothing", i, c.Sites)
			}
		}
	}
	if applied < 30 {
		t.Errorf("only %d of 40 compositions can be applied", applied)
	}
}
