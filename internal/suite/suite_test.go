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
				t.Errorf("%s: the suite %v and the pattern %s have %s: want both", name, s.has(name), s.Pattern(), s.Target)
			}
		}
		if name := "TestSomething"; s.has(name) || run.MatchString(name) {
			t.Errorf("%s has %s", s.Target, name)
		}
	}
}
