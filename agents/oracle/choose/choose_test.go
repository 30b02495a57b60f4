package choose

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents/oracle/write"
	"github.com/tracesmith/tracesmith/schemas"
)

const patch = `diff --git a/p.py b/p.py
--- a/p.py
+++ b/p.py
@@ -10,3 +10,3 @@ def f():
     a = 1
-    b = a
+    b = a + 1
     c = 2
@@ -20,2 +20,3 @@ def g():
     d = 3
+    e = 4
     f = 5
@@ -30,3 +31,2 @@ def h():
     g = 6
-    h = 7
-    i = 8
+    h = 9
`

func TestReadFix(t *testing.T) {
	f, err := readFix(patch)
	if err != nil {
		t.Fatal(err)
	}
	at := func(line int) write.Place { return write.Place{File: "p.py", Line: line} }
	lines := map[write.Place]bool{at(11): true, at(20): true, at(21): true, at(31): true, at(32): true}
	if diff := cmp.Diff(lines, f.lines); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[write.Place]string{at(11): "b = a + 1"}, f.replaced); diff != "" {
		t.Error(diff)
	}
	plain, err := readFix(patch[strings.Index(patch, "--- a/"):]) // without the header of git
	if diff := cmp.Diff(lines, plain.lines); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if !f.within(at(9), 12) || f.within(at(9), 10) || f.within(write.Place{File: "q.py", Line: 11}, 11) {
		t.Error("statements around the fix")
	}
	if !f.isReplacement(at(11), "b = (a+1)") || f.isReplacement(at(11), "b = a") || f.isReplacement(at(20), "") {
		t.Error("statements that equal the fix")
	}
	if f.distance(at(5)) != 6 || f.distance(at(33)) < 1000 {
		t.Errorf("distances %d and %d", f.distance(at(5)), f.distance(at(33)))
	}
	if _, err := readFix("diff --git a/p.py b/p.py\n--- a/p.py\n+++ b/p.py\n@@ -1,9 +1 @@\n x\n"); err == nil {
		t.Error("an incomplete patch has no error")
	}
}

// The chooser follows the path to the cause: it reads what shows the fix before anything else, and then functions
// close to the cause.
func TestChooseWhatToRead(t *testing.T) {
	c, err := New(schemas.PairedTrace{Test: "t", Path: []string{"p.py:main", "q.py:Cart.total", "p.py:f"}}, patch)
	if err != nil {
		t.Fatal(err)
	}
	function := func(file, name string, line int) write.Function {
		return write.Function{Place: write.Place{File: file, Line: line}, Name: name}
	}
	find := func(name string) write.Option {
		return write.Option{Kind: write.Find, Function: write.Function{Name: name}}
	}
	read := func(file, name string, line int) write.Option {
		return write.Option{Kind: write.ReadBody, Function: function(file, name, line), Place: write.Place{File: file, Line: line}, Last: line + 30}
	}
	options := []write.Option{
		{Kind: write.GiveUp}, find("other"), {Kind: write.Outline}, find("Cart"), find("main"), find("total"), find("f"), read("q.py", "total", 3), read("p.py", "g", 2),
	}
	for i := len(options) - 1; i > 1; i-- {
		if got := c.Choose(&write.Notes{}, options[:i+1]); got != i {
			t.Errorf("of %d options, it chooses %d: %+v", i+1, got, options[got])
		}
	}
}

// In a loop whose breakpoint stays, running on to the end of the function stops at the same line again and again.
func TestGiveUpInALoop(t *testing.T) {
	c, err := New(schemas.PairedTrace{Test: "t", Path: []string{"p.py:f"}}, patch)
	if err != nil {
		t.Fatal(err)
	}
	stop := write.Stop{Place: write.Place{File: "p.py", Line: 11}, Event: "line", Function: "f"}
	n := &write.Notes{Stops: []write.Stop{stop, stop, stop, stop}}
	if !c.isSearching(n, stop) {
		t.Error("gives up too early")
	}
	n.Stops = append(n.Stops, stop)
	if c.isSearching(n, stop) {
		t.Error("runs on forever")
	}
}

func TestMayBe(t *testing.T) {
	long := "[" + strings.Repeat("1, ", 60) + "1]"
	for _, c := range []struct {
		traced, printed string
		want            bool
	}{
		{"3", "3", true}, {"3", "4", false}, {"'a'", `"a"`, true},
		{"[1, 2]", "[1, 2]", true}, {"[1, 2]", "[1, 3]", false}, {"[1, 2, 3, 4, 5, 6, 7]", "[1, 2, 3, 4, 5, 6, ...]", true}, {"{'a': 1}", "{'a': 2}", false},
		{"{1, 2}", "{2, 1}", true}, {"[list of 3]", "[[[[1, 2, 3]]]]", true},
		{long[:maxTraced] + "#0123456789abcdef", long, true}, {long[:maxTraced] + "#0123456789abcdef", "[1, 2]", false},
		{"Cart(total=3)", "<shop.Cart object at 0x7f00>", false}, {"Cart(total=3)", "Cart(3)", true},
	} {
		if got := mayBe(c.traced, c.printed); got != c.want {
			t.Errorf("%s printed as %s: got %v", c.traced, c.printed, got)
		}
	}
}

// A recursion without an end stops at the same line in ever deeper calls. A loop stops there in the same call.
func TestDeeperCallsAtOneLine(t *testing.T) {
	stop := func(line, depth int) write.Stop {
		return write.Stop{Place: write.Place{File: "p.py", Line: line}, Event: "line", Depth: depth}
	}
	for name, c := range map[string]struct {
		stops []write.Stop
		want  int
	}{
		"none":      {nil, 0},
		"one":       {[]write.Stop{stop(4, 1)}, 0},
		"recursion": {[]write.Stop{stop(2, 1), stop(4, 1), stop(4, 2), stop(4, 3)}, 2},
		"loop":      {[]write.Stop{stop(4, 1), stop(4, 1), stop(4, 1)}, 0},
		"ended":     {[]write.Stop{stop(4, 1), stop(4, 2), stop(5, 2)}, 0},
	} {
		if got := deeper(&write.Notes{Stops: c.stops}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
