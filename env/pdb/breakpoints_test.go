package pdb

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

func lines(b *testDebugger) []int {
	var out []int
	for _, p := range b.Breakpoints() {
		out = append(out, p.Line)
	}
	return out
}

func (b *testDebugger) hasLines(want ...int) {
	b.t.Helper()
	if d := cmp.Diff(want, lines(b)); d != "" {
		b.t.Errorf("breakpoint lines (-want +got):\n%s", d)
	}
}

func TestEachPythonBreakpointPlaces(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" main.py")
		for spec, want := range map[string]string{
			"b 13":                        "main.py:13",
			"b main.py:10":                "main.py:10",
			"b pkg/prices.py:17":          "pkg/prices.py:17",
			"b ./pkg/prices.py:18":        "pkg/prices.py:18",
			"b pkg/prices:19":             "pkg/prices.py:19",
			"b pkg.prices:21":             "pkg/prices.py:21",
			"b pkg/prices.py:__repr__":    "pkg/prices.py:9",
			"b Price.doubled":             "pkg/prices.py:13",
			"b pkg.prices.Price.__init__": "pkg/prices.py:5",
			"b run":                       "main.py:8",
			"b crash()":                   "tricky.py:8",
			"b tests/test_prices.py:9":    "tests/test_prices.py:9",
		} {
			b.has(b.do(spec), "set at "+want+"\n")
		}
		b.do("cl")
		b.do("b run")
		b.at(b.do("c"), "main.py", 8)
		b.has(b.do("b total"), "set at pkg/prices.py:17") // by now imported
		b.has(b.do("b Price.__repr__"), "set at pkg/prices.py:9")
	})
}

func TestEachPythonImpossibleBreakpointsAreRefused(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" main.py")
		for spec, want := range map[string]string{
			"b 100":                "Line 100 of main.py does not exist: the file has 19 lines. The nearest line that can be stopped at is 19",
			"b -3":                 "Line -3 of main.py does not exist",
			"b 12":                 "Line 12 of main.py is blank, a comment or only part of a statement. The nearest line that can be stopped at is 13: result = total(prices)",
			"b 11":                 "The nearest line",
			"b nowhere.py:3":       "No file nowhere.py in the workspace",
			"b nothing_here":       "No function nothing_here",
			"b pkg/prices.py:no":   "No function no in pkg/prices.py",
			"b main.py:":           "No function",
			"b ../../etc/passwd:1": "",
			"b 13, x ==":           "is not a Python expression",
			"b 13 14":              "neither LINE, FILE:LINE nor a function",
			"b broken.py:3":        "",
			"clear 9":              "there is no breakpoint 9",
			"disable":              "which breakpoint?",
			"condition 4 x":        "there is no breakpoint 4",
			"ignore":               "which breakpoint?",
		} {
			r := b.try(spec)
			if want == "" {
				continue // need not be refused; must not break anything
			}
			b.has(r, "*** ", want)
			if !r.IsError {
				t.Errorf("%q was not refused", spec)
			}
		}
	})
}

func TestEachPythonConditionsTemporaryDisabledIgnored(t *testing.T) {
	eachPython(t, func(t *testing.T, py string) {
		b := open(t, py+" tricky.py numbers")
		b.has(b.do("b 119, n == 3"), "Breakpoint 1 set at tricky.py:119, if n == 3")
		b.has(b.do("tbreak 118"), "Breakpoint 2 set at tricky.py:118 (temporary: removed when first hit)")
		b.do("b 120")
		b.has(b.do("disable 3"), "Breakpoint 3 disabled at tricky.py:120")
		b.has(b.do("c"), "Breakpoint 2 hit (temporary: now removed).")
		b.hasLines(119, 120)
		b.do("c")
		b.has(b.do("p n"), "3\n")
		b.do("condition 1")
		b.do("ignore 1 2")
		b.do("c")
		b.has(b.do("p n"), "6\n")
		b.do("condition 1 undefined_name > 3")
		b.has(b.do("c"), "its condition 'undefined_name > 3' raised NameError")
		b.do("disable 1")
		b.do("enable 3")
		b.at(b.do("c"), "tricky.py", 120)
		b.has(b.do("b"), "1  tricky.py:119, if undefined_name > 3, disabled, reached ", "3  tricky.py:120, reached 1 times")
		want := []schemas.Breakpoint{
			{File: "tricky.py", Line: 119, Condition: "undefined_name > 3"},
			{File: "tricky.py", Line: 120, Enabled: true, Hits: 1},
		}
		got := b.Breakpoints()
		got[0].Hits = 0 // how bdb counts ignored hits differs between versions
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("breakpoints (-want +got):\n%s", d)
		}
		// Everything survives a restart.
		b.has(b.do("restart"), "The program was restarted.")
		b.at(b.do("c"), "tricky.py", 120)
		b.has(b.do("cl tricky.py:119"), "Breakpoint 1 at tricky.py:119 deleted")
		b.has(b.do("b 120, square == 0"), "Breakpoint 3 was already there; it is now at tricky.py:120, if square == 0")
		b.has(b.do("cl"), "All breakpoints are deleted (1).")
		b.has(b.do("b"), "No breakpoints are set.")
	})
}

func TestBreakpointsSurvive(t *testing.T) {
	b := open(t, "python3 tricky.py loop").withLongGrace()
	b.do("b numbers, n > 4")
	b.has(b.do("q"), "The debugging session has ended. Breakpoints are kept (1).")
	b.has(b.do("q"), "No debugging session is running")
	b.has(b.do("b"), "1  tricky.py:118, if n > 4")
	if b.Frame() != nil {
		t.Error("listing breakpoints started the program")
	}
	b.do("n")
	b.doWithin("c", shortTimeout)
	b.hasLines(118)
	r, err := b.Command(t.Context(), env.DebuggerCommand{Text: "!import os; os.kill(os.getpid(), 9)", Timeout: longTimeout})
	if err != nil {
		t.Fatal(err)
	}
	b.has(r, "ended with exit code 137")
	b.hasLines(118)
	if _, err = b.Command(t.Context(), env.DebuggerCommand{Text: "condition 1 1", Entrypoint: "python3 tricky.py numbers", Timeout: longTimeout}); err != nil {
		t.Fatal(err)
	}
	b.at(b.do("c"), "tricky.py", 118)
	if err := b.Reset(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	b.hasLines(118)
	if err := b.Reset(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	b.hasLines()
	b.has(b.do("n"), "tricky.py loop") // the entrypoint of the configuration again
}

func TestEditsShiftBreakpoints(t *testing.T) {
	set := func(lines ...int) *Debugger {
		d := New(Config{Workdir: workdir, Entrypoint: "python3 main.py"})
		for _, l := range lines {
			d.d.breakpoints.set(schemas.Breakpoint{File: "main.py", Line: l, Enabled: true, Condition: "x"})
		}
		d.d.breakpoints.set(schemas.Breakpoint{File: "other.py", Line: 7, Enabled: true})
		return d
	}
	cases := []struct {
		name string
		edit env.Edit
		want []int
	}{
		{"shift down by the gap between breakpoints", env.Edit{First: 1, Removed: 0, Added: 10}, []int{40, 50, 60}},
		{"shift up by the gap between breakpoints", env.Edit{First: 1, Removed: 10, Added: 0}, []int{20, 30, 40}},
		{"insert between", env.Edit{First: 35, Removed: 0, Added: 2}, []int{30, 42, 52}},
		{"insert before a line", env.Edit{First: 40, Removed: 0, Added: 1}, []int{30, 41, 51}},
		{"replace the line", env.Edit{First: 40, Removed: 1, Added: 5}, []int{30, 54}},
		{"replace a range", env.Edit{First: 30, Removed: 11, Added: 1}, []int{40}},
		{"delete after the last breakpoint", env.Edit{First: 51, Removed: 4}, []int{30, 40, 50}},
		{"whole file", env.Edit{Whole: true}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := set(30, 40, 50)
			c.edit.File = "main.py"
			d.Edited(c.edit)
			var got []int
			for _, p := range d.Breakpoints() {
				if p.File == "main.py" {
					got = append(got, p.Line)
					if p.Condition != "x" {
						t.Errorf("condition lost: %+v", p)
					}
				} else if p.Line != 7 {
					t.Errorf("another file's breakpoint moved: %+v", p)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if dropped := 3 - len(c.want); len(d.d.breakpoints.notes) != dropped {
				t.Errorf("notes %q, want %d", d.d.breakpoints.notes, dropped)
			}
		})
	}
}

func TestEditMakesTheSessionStale(t *testing.T) {
	b := open(t, "python3 main.py")
	b.do("b pkg/prices.py:17")
	b.do("b pkg/prices.py:19")
	b.do("b pkg/prices.py:21")
	b.do("c")
	b.write("pkg/prices.py", "# one\n# two\n"+b.read("pkg/prices.py"))
	b.Edited(env.Edit{File: "pkg/prices.py", First: 1, Removed: 0, Added: 2})
	b.Edited(env.Edit{File: "pkg/prices.py", First: 21, Removed: 1, Added: 1})
	b.hasLines(19, 23)
	r := b.do("c")
	b.has(r, "Files were edited since the program started, so it was restarted.",
		"Breakpoint 2 at pkg/prices.py:21 was removed: the edit replaced its line.")
	b.at(r, "pkg/prices.py", 19)
	b.hasNot(b.do("p 1"), "restarted", "was removed")

	b.write("pkg/prices.py", "def total(prices):\n    return 3\n\n\nPrice = str\n")
	b.Edited(env.Edit{File: "main.py", First: 1, Removed: 0, Added: 0})
	b.has(b.try("n"), "Breakpoint 1 cannot be reached any more: Line 19 of pkg/prices.py does not exist")
}
