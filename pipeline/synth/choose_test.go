package synth

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
)

// stateOf returns a repository with these valid trials, in this order. Trials without a key, a function or a
// divergence get their own.
func stateOf(trials ...*Trial) *repoState {
	s := &repoState{trials: map[string]*Trial{}}
	for i, t := range trials {
		if t.Key == "" {
			t.Key = fmt.Sprintf("t%d", i)
		}
		if t.Funcs == nil {
			t.Funcs = []string{"m.py::" + t.Key}
		}
		if t.Divergence == "" {
			t.Divergence = t.Key
		}
		t.Outcome = Valid
		s.order, s.trials[t.Key] = append(s.order, t.Key), t
	}
	return s
}

// bug returns a valid trial of an operator in a function of a file.
func bug(operator, file, function string) *Trial {
	return &Trial{Operators: []string{operator}, Funcs: []string{file + "::" + function}, Lines: map[string][]int{file: {1}}}
}

// at returns a valid trial that changes these lines.
func at(sites ...string) *Trial {
	return &Trial{Operators: []string{"r1"}, Sites: sites}
}

func keysOf(trials []*Trial) string {
	var keys []string
	for _, t := range trials {
		keys = append(keys, t.Key)
	}
	return strings.Join(keys, " ")
}

func TestEachCapHasItsOwnLimit(t *testing.T) {
	for name, c := range map[string]struct {
		caps   Caps
		trials []*Trial
		want   string // keys of the chosen trials
		reason string // of the first trial that is not chosen
	}{
		"no cap":   {Caps{}, []*Trial{bug("r1", "m.py", "f"), bug("r1", "m.py", "f"), bug("r1", "m.py", "f")}, "t0 t1 t2", ""},
		"function": {Caps{Function: 2}, []*Trial{bug("r1", "m.py", "f"), bug("r2", "m.py", "f"), bug("r3", "m.py", "f"), bug("r4", "m.py", "g")}, "t0 t1 t3", "the cap of 2 for function m.py::f is reached"},
		"operator": {Caps{Operator: 1}, []*Trial{bug("r1", "m.py", "f"), bug("r1", "m.py", "f"), bug("r2", "m.py", "f"), bug("r1", "m.py", "g")}, "t0 t2 t3", "the cap of 1 for r1 in m.py::f is reached"},
		"file":     {Caps{File: 2}, []*Trial{bug("r1", "m.py", "f"), bug("r2", "m.py", "g"), bug("r3", "m.py", "h"), bug("r4", "n.py", "f")}, "t0 t1 t3", "the cap of 2 for file m.py is reached"},
		"line":     {Caps{Line: 1}, []*Trial{at("m.py:3"), at("m.py:3"), at("m.py:4"), at("m.py:5", "m.py:4")}, "t0 t2", "the cap of 1 for line m.py:3 is reached"},
		"a composed bug counts for each of its operators once": {Caps{Operator: 2},
			[]*Trial{{Operators: []string{"r1", "r1", "a2"}, Funcs: []string{"m.py::f"}}, bug("r1", "m.py", "f"), bug("r1", "m.py", "f")}, "t0 t1", "the cap of 2 for r1 in m.py::f is reached"},
		"a composed bug counts for each of its files": {Caps{File: 1},
			[]*Trial{{Operators: []string{"r1", "a2"}, Lines: map[string][]int{"m.py": {1}, "n.py": {2}}}, bug("r2", "m.py", "f"), bug("r2", "n.py", "f"), bug("r2", "o.py", "f")}, "t0 t3", "the cap of 1 for file m.py is reached"},
		"rare operators first": {Caps{Function: 2}, []*Trial{bug("r1", "m.py", "f"), bug("r1", "m.py", "f"), bug("r1", "m.py", "f"), bug("a2", "m.py", "f")}, "t0 t3", "the cap of 2 for function m.py::f is reached"},
	} {
		s := stateOf(c.trials...)
		s.choose(Config{Caps: c.caps})
		if got := keysOf(s.chosen); got != c.want {
			t.Errorf("%s: chose %q, want %q", name, got, c.want)
		}
		reason := ""
		if i := slices.IndexFunc(c.trials, func(t *Trial) bool { return t.Outcome == Capped }); i >= 0 {
			reason = c.trials[i].Reason
		}
		if reason != c.reason {
			t.Errorf("%s: the first reason is %q, want %q", name, reason, c.reason)
		}
	}
}

// The quota counts only what the caps admit.
func TestQuotaLimitsChosenTrials(t *testing.T) {
	s := stateOf(bug("r1", "m.py", "f"), bug("r1", "m.py", "f"), bug("r1", "m.py", "g"), bug("r1", "m.py", "h"))
	s.quota = new(2)
	s.choose(Config{Caps: Caps{Function: 1}})
	if got := keysOf(s.chosen); got != "t0 t2" || s.trials["t3"].Reason != "enough tasks" {
		t.Errorf("chose %q, and the last has the reason %q", got, s.trials["t3"].Reason)
	}
}

// A bug is crude if it breaks many tests, or if each test that executes the changed line fails there with an error that
// says what is wrong. Crude bugs are chosen last.
func TestCrudeBugsAreChosenLast(t *testing.T) {
	failing := func(kind, file string, tests ...string) *Trial {
		return &Trial{Operators: []string{"r1"}, Lines: map[string][]int{"m.py": {1}}, FailToPass: tests, Patch: "--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-x\n+y\n",
			Failures: []Failure{{Test: tests[0], Type: kind, Frames: []Frame{{File: "test_m.py", Line: 1}, {File: file, Line: 1}}}}}
	}
	for name, c := range map[string]struct {
		first *Trial
		crude bool
	}{
		"crude":                   {failing("TypeError", "m.py", "a", "b"), true},
		"a test passes":           {failing("TypeError", "m.py", "a"), false},
		"another exception":       {failing("KeyError", "m.py", "a", "b"), false},
		"raised elsewhere":        {failing("TypeError", "n.py", "a", "b"), false},
		"no failure is described": {bug("r1", "m.py", "f"), false},
		"more than 20 tests fail": {failing("KeyError", "m.py", strings.Split("abcdefghijklmnopqrstu", "")...), true},
	} {
		s := stateOf(c.first, failing("KeyError", "m.py", "a", "b"))
		s.coverage = coverage{Tests: map[string]map[string]string{"a": {"m.py": "1"}, "b": {"m.py": "1"}}}
		if all, good := s.choosable(Config{}); len(all) != 2 || len(good) != map[bool]int{true: 1, false: 2}[c.crude] {
			t.Errorf("%s: %d bugs can be chosen, %d of them not crude", name, len(all), len(good))
		}
		s.quota = new(1)
		s.choose(Config{})
		if want := map[bool]string{true: "t1", false: "t0"}[c.crude]; keysOf(s.chosen) != want {
			t.Errorf("%s: chose %s, want %s", name, keysOf(s.chosen), want)
		}
	}
}

// Bugs that differ only in their file, in names, or in how they cause the same behavior count once.
func TestNearlyEqualBugsCountOnce(t *testing.T) {
	in := func(fn, body, shape string) *Trial {
		return &Trial{Operators: []string{"r1"}, Funcs: []string{fn}, Body: body, Shape: shape}
	}
	same := func(divergence, patch string, failing ...string) *Trial {
		return &Trial{Operators: []string{"r1"}, Funcs: []string{"m.py::f"}, FailToPass: failing, Divergence: divergence, Patch: patch}
	}
	for name, c := range map[string]struct {
		trials []*Trial
		want   string
		rest   Outcome
		reason string
	}{
		"the same function in two files": {[]*Trial{in("m.py::f", "b", "s"), in("n.py::f", "b", "s")}, "t0", Duplicate, "the same code as t0"},
		"a copy with other names":        {[]*Trial{in("m.py::f", "b1", "s"), in("m.py::g", "b2", "s")}, "t0", Equivalent, "the same change as t0, in a copy of the function"},
		"another shape":                  {[]*Trial{in("m.py::f", "b1", "s1"), in("m.py::g", "b2", "s2")}, "t0 t1", "", ""},
		"no shape, as of new functions":  {[]*Trial{in("m.py::f", "b1", ""), in("m.py::g", "b2", "")}, "t0 t1", "", ""},
		"no body":                        {[]*Trial{in("m.py::f", "", "s1"), in("m.py::g", "", "s2")}, "t0 t1", "", ""},
		"equal behavior, shorter patch":  {[]*Trial{same("m.py:3 x", "long patch", "a"), same("m.py:3 x", "patch", "a")}, "t1", Equivalent, "behaves like t1"},
		"equal behavior, longer patch":   {[]*Trial{same("m.py:3 x", "patch", "a"), same("m.py:3 x", "long patch", "a")}, "t0", Equivalent, "behaves like t0"},
		"other tests fail":               {[]*Trial{same("m.py:3 x", "p", "a"), same("m.py:3 x", "p", "b")}, "t0 t1", "", ""},
		"it diverges elsewhere":          {[]*Trial{same("m.py:3 x", "p", "a"), same("m.py:4 x", "p", "a")}, "t0 t1", "", ""},
	} {
		s := stateOf(c.trials...)
		s.choose(Config{})
		if got := keysOf(s.chosen); got != c.want {
			t.Errorf("%s: chose %q, want %q", name, got, c.want)
		}
		for _, trial := range c.trials {
			if !slices.Contains(s.chosen, trial) && (trial.Outcome != c.rest || trial.Reason != c.reason) {
				t.Errorf("%s: %s has %s %q, want %s %q", name, trial.Key, trial.Outcome, trial.Reason, c.rest, c.reason)
			}
		}
	}
	unknown := stateOf(same("", "p", "a"), same("", "p", "a"))
	unknown.trials["t0"].Divergence, unknown.trials["t1"].Divergence = "", ""
	if unknown.choose(Config{}); len(unknown.chosen) != 2 {
		t.Errorf("two bugs whose divergence is unknown: chose %q", keysOf(unknown.chosen))
	}
}

func TestRequestedDifficultiesAreChosen(t *testing.T) {
	bugs := func() *repoState {
		s := stateOf(bug("r1", "m.py", "f"), bug("r1", "m.py", "g"), bug("r1", "m.py", "h"))
		for i, d := range []schemas.Difficulty{{Level: "T1", GoldLevel: "T0"}, {Level: "T1", GoldLevel: "T2"}, {Level: "T3", GoldLevel: "T2"}} {
			s.trials[fmt.Sprintf("t%d", i)].Difficulty = d
		}
		return s
	}
	for _, c := range []struct {
		level, gold []string
		want        string
	}{{nil, nil, "t0 t1 t2"}, {[]string{"T1"}, nil, "t0 t1"}, {nil, []string{"T2"}, "t1 t2"}, {[]string{"T1"}, []string{"T2"}, "t1"}, {[]string{"T0", "T3"}, nil, "t2"}} {
		s := bugs()
		s.choose(Config{Difficulty: c.level, GoldDifficulty: c.gold})
		if got := keysOf(s.chosen); got != c.want {
			t.Errorf("difficulty %v, gold difficulty %v: chose %q, want %q", c.level, c.gold, got, c.want)
		}
	}
}

// No repository has more than its share of the tasks, if there are at least twice as many repositories as the
// share needs.
func TestShareOfOneRepositoryIsCapped(t *testing.T) {
	for _, c := range []struct {
		share float64
		sizes []int // released trials of each repository
		want  []int
	}{
		{0.5, []int{6, 2, 1, 1}, []int{5, 2, 1, 1}},
		{0.5, []int{6, 2, 1}, []int{6, 2, 1}},       // too few repositories
		{0, []int{6, 2, 1, 1}, []int{6, 2, 1, 1}},   // no cap
		{0.5, []int{1, 0, 0, 0}, []int{1, 0, 0, 0}}, // at least one
	} {
		st := &factory{cfg: Config{Caps: Caps{Share: c.share}}}
		for i, n := range c.sizes {
			s := &repoState{repo: healthy(t, fmt.Sprintf("r%d", i), "python -m pytest -q", map[string]string{"m.py": "x = 1\n"}), releases: map[string]release{}}
			for k := range n {
				trial := &Trial{Repo: s.repo.Task.InstanceID, Key: fmt.Sprint(k), Operators: []string{"r1"}, Sites: []string{"m.py:1"}, Outcome: Released, Patch: fmt.Sprint(i, k)}
				s.chosen = append(s.chosen, trial)
				s.releases[trial.Key] = release{Outcome: Released}
			}
			st.states = append(st.states, s)
		}
		tasks := st.released()
		got := make([]int, len(c.sizes))
		for i, s := range st.states {
			for _, task := range tasks {
				if task.state == s {
					got[i]++
				}
			}
			for _, trial := range s.chosen[got[i]:] {
				if trial.Outcome != Capped || trial.Reason != "the share of one repository" {
					t.Errorf("%v: a further trial of r%d has %s %q", c, i, trial.Outcome, trial.Reason)
				}
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("share %v of %v tasks: %s", c.share, c.sizes, diff)
		}
	}
}
