package suite

import (
	"regexp"
	"testing"
)

func TestPatternRunsWhatValueAccepts(t *testing.T) {
	for _, s := range All() {
		run := regexp.MustCompile(s.Pattern())
		for _, prefix := range s.Prefixes {
			if name := "Test" + prefix + "Something"; !s.has(name) || !run.MatchString(name) {
				t.Errorf("%s: belongs to suite %s: %v, matches %s: %v; want both", name, s.Target, s.has(name), s.Pattern(), run.MatchString(name))
			}
		}
		if name := "TestSomething"; s.has(name) || run.MatchString(name) {
			t.Errorf("%s belongs to suite %s", name, s.Target)
		}
	}
}
