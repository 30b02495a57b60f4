package verify

import (
	"regexp"
	"slices"
	"strings"
)

// catalogue finds the tests of a run by the ids that tasks list. Benchmarks
// publish ids as some log parser left them; see aliases.
type catalogue struct {
	tests map[string]string
	alias map[string][]string // other names -> full ids
}

// newCatalogue takes the statuses of a run's tests, and their docstrings' first lines.
func newCatalogue(tests, docs map[string]string) catalogue {
	c := catalogue{tests, map[string][]string{}}
	for _, id := range sortedKeys(tests) {
		names := aliases(id)
		if doc := docs[id]; doc != "" {
			names = append(names, doc) // what unittest calls it in its log
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

// aliases of an id: without its file and with dots, as R2E-Gym and the sympy
// instances of SWE-bench have them (a.py::T::test_x[1] is T.test_x[1]); cut at the
// first blank, and a path as parameter reduced to its last part, as SWE-bench's
// parser leaves them.
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

// status is the word on a listed id: that of the worst test it stands for; ran is
// false without any.
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
