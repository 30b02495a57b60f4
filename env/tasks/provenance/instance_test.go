package provenance

import (
	"slices"
	"testing"
)

func TestContamination(t *testing.T) {
	for name, c := range map[string]struct {
		source, instance, repo string
		known                  bool
		want                   []string
	}{
		"a task of the benchmark":  {"swebench", "django__django-11099", "django/django", true, []string{"swe-bench:instance", "swe-bench:repo"}},
		"its id through a file":    {"file", "django__django-11099", "", false, []string{"swe-bench:instance", "swe-bench:repo"}},
		"its repository":           {"dir", "my-bug", "https://github.com/sympy/sympy.git", true, []string{"swe-bench:repo"}},
		"a mirror of it":           {"swesmith", "sympy__sympy.360290c4.lm_rewrite__1", "swesmith/sympy__sympy.360290c4", true, []string{"swe-bench:repo"}},
		"made to be trained on":    {"swesmith", "oauthlib__oauthlib.1fd52536.x__1", "oauthlib/oauthlib", true, []string{}},
		"exercises":                {"aider", "two_fer", "exercism/python", true, []string{"aider-polyglot:instance"}},
		"an unknown repository":    {"path", "my-program", "", false, nil},
		"known, without benchmark": {"dir", "x-1", "acme/calc", true, []string{}},
		"an id of the usual form":  {"dir", "acme__calc-7", "acme/calc", true, []string{}},
	} {
		if got := Contamination(c.source, c.instance, c.repo, c.known); !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%s: %#v, want %#v", name, got, c.want)
		}
	}
}
