package provenance

import (
	"fmt"
	"math"
	"testing"
)

func TestCanonicalNames(t *testing.T) {
	for given, want := range map[string]string{
		"sympy/sympy":                             "github.com/sympy/sympy",
		"https://github.com/Sympy/SymPy.git":      "github.com/sympy/sympy",
		"git@github.com:sympy/sympy.git":          "github.com/sympy/sympy",
		"ssh://git@github.com/sympy/sympy":        "github.com/sympy/sympy",
		"https://www.github.com/sympy/sympy/":     "github.com/sympy/sympy",
		"https://github.com/sympy/sympy/tree/1.2": "github.com/sympy/sympy",
		"swesmith/sympy__sympy.360290c4":          "github.com/sympy/sympy",
		"sympy__sympy.360290c4":                   "github.com/sympy/sympy",
		"django__django-11099":                    "github.com/django/django",
		"PyCQA/pylint":                            "github.com/pylint-dev/pylint",
		"kennethreitz/requests":                   "github.com/psf/requests",
		"gitlab.com/a/b":                          "gitlab.com/a/b",
		"https://gitlab.com/group/project.git":    "gitlab.com/group/project",
		"aider/two-fer":                           "github.com/aider/two-fer",
		"two-fer":                                 "two-fer",
		"orange3":                                 "github.com/biolab/orange3",
		"":                                        "",
	} {
		if got := Canonical(given); got != want {
			t.Errorf("Canonical(%q) = %q, want %q", given, got, want)
		}
		if got := Canonical(Canonical(given)); got != want {
			t.Errorf("Canonical(Canonical(%q)) = %q, want the same as once", given, got)
		}
	}
}

func TestBenchmarksAreKnownUnderEveryName(t *testing.T) {
	for _, name := range []string{"swesmith/psf__requests.0e4ae38f", "https://github.com/requests/requests", "pallets/flask", "mwaskom__seaborn-3190"} {
		if got := Benchmark(name); got != "swe-bench" {
			t.Errorf("Benchmark(%q) = %q, want swe-bench", name, got)
		}
	}
	if got := Benchmark("github.com/example/healthy"); got != "" {
		t.Errorf("an unlisted repository belongs to %q", got)
	}
	swe := 0
	for name := range benchmarks {
		if Canonical(name) != name {
			t.Errorf("%s in the list is not canonical: %s", name, Canonical(name))
		}
		if Benchmark(name) == "swe-bench" {
			swe++
		}
	}
	if swe != 12 {
		t.Errorf("%d repositories of SWE-bench, want its twelve", swe)
	}
}

func TestSplitDependsOnTheRepository(t *testing.T) {
	ratios := [3]float64{0.8, 0.1, 0.1}
	count := map[string]int{}
	for i := range 5000 {
		name := fmt.Sprintf("owner%d/name", i)
		got, err := Split(name, "salt", ratios)
		if err != nil {
			t.Fatal(err)
		}
		count[got]++
		if again, _ := Split("https://github.com/"+name+".git", "salt", ratios); again != got {
			t.Fatalf("%s is in %s, its address in %s", name, got, again)
		}
	}
	for i, split := range Splits {
		if share := float64(count[split]) / 5000; math.Abs(share-ratios[i]) > 0.02 {
			t.Errorf("%s has the share %.3f, want %.2f", split, share, ratios[i])
		}
	}
	if got, err := Split("a/b", "s", [3]float64{1, 0, 0}); got != "train" || err != nil {
		t.Errorf("all into train gives %q, %v", got, err)
	}
	for _, wrong := range [][3]float64{{1, 1, 0}, {0.5, 0, 0}, {1.5, -0.5, 0}} {
		if _, err := Split("a/b", "s", wrong); err == nil {
			t.Errorf("the shares %v are accepted", wrong)
		}
	}
}

// The usual ids of tasks from hosted repositories contain the repository's name.
func TestNamed(t *testing.T) {
	for id, want := range map[string]string{
		"django__django-11099":                               "github.com/django/django",
		"sympy__sympy.360290c4":                              "github.com/sympy/sympy",
		"pandas-dev__pandas.95280573.combine_file__0fwdrjk9": "github.com/pandas-dev/pandas",
		"John__Tool.0123abcd.func_pm_op_swap__ab.c":          "github.com/john/tool",
		"stockroom": "", "a-12": "", "a__b": "", "x/a__b-1": "",
	} {
		if got := RepoOfInstance(id); want == "" && got != "" || want != "" && Canonical(got) != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}
