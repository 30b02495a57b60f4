package verify

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// catalogue finds the tests of a run by the ids that tasks list. Benchmarks publish ids as their
// log parsers print them; see aliases.
type catalogue struct {
	tests map[string]string
	alias map[string][]string // other names -> full ids
}

// newCatalogue makes a catalogue of the statuses of a run's tests and the first lines of their
// docstrings.
func newCatalogue(tests, docs map[string]string) catalogue {
	c := catalogue{tests, map[string][]string{}}
	for _, id := range slices.Sorted(maps.Keys(tests)) {
		names := aliases(id)
		if doc := docs[id]; doc != "" {
			names = append(names, doc) // its name in the log of unittest
		}
		for _, name := range names {
			if name != id && !slices.Contains(c.alias[name], id) {
				c.alias[name] = append(c.alias[name], id)
			}
		}
	}
	return c
}

// pathOption is a parameter that is an absolute path.
var pathOption = regexp.MustCompile(`^([^\[]*\[)/[^/*][^*]*(/[^/*]*\])$`)

// aliases lists other forms of an id: without its file and with dots, as in R2E-Gym and the sympy
// instances of SWE-bench (a.py::T::test_x[1] is T.test_x[1]); and cut at the first blank, with a
// path as parameter reduced to its last part, as SWE-bench's parser prints them.
func aliases(id string) []string {
	var names []string
	if _, name, ok := strings.Cut(id, "::"); ok {
		names = append(names, strings.ReplaceAll(name, "::", "."))
	}
	cut, _, _ := strings.Cut(id, " ")
	return append(names, cut, pathOption.ReplaceAllString(cut, "${1}${2}"))
}

// find lists the tests that a listed id stands for.
func (c catalogue) find(listed string) []string {
	if _, ran := c.tests[listed]; ran {
		return []string{listed}
	}
	return c.alias[listed]
}

// status is the worst status of the tests that a listed id stands for; ran is false if there are
// none.
func (c catalogue) status(listed string) (word string, ran bool) {
	ids := c.find(listed)
	if len(ids) == 0 {
		return "", false
	}
	order := []string{"error", "failed", "xpassed", "skipped", "xfailed", "passed"}
	worst := slices.MinFunc(ids, func(a, b string) int {
		return slices.Index(order, c.tests[a]) - slices.Index(order, c.tests[b])
	})
	return c.tests[worst], true
}
