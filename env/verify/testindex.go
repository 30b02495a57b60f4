package verify

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// testIndex finds the tests of a run by the ids that tasks list. These may differ from the full ids,
// because benchmarks publish ids as their log parsers print them (see aliases).
type testIndex struct {
	tests map[string]string   // full id -> status
	alias map[string][]string // other names -> full ids
}

// newTestIndex returns the index of a run. tests has the status of each test, and docs the first
// line of its docstring.
func newTestIndex(tests, docs map[string]string) testIndex {
	c := testIndex{tests, map[string][]string{}}
	for _, id := range slices.Sorted(maps.Keys(tests)) {
		names := aliases(id)
		if doc := docs[id]; doc != "" {
			names = append(names, doc) // unittest prints it instead of the id
		}
		for _, name := range names {
			if name != id && !slices.Contains(c.alias[name], id) {
				c.alias[name] = append(c.alias[name], id)
			}
		}
	}
	return c
}

// pathParameter matches an id with an absolute path as its parameter.
var pathParameter = regexp.MustCompile(`^([^\[]*\[)/[^/*][^*]*(/[^/*]*\])$`)

// aliases returns other forms of an id. R2E-Gym and the sympy instances of SWE-bench leave out the file
// and use dots: a.py::T::test_x[1] is T.test_x[1]. SWE-bench's log parser cuts ids at the first space
// and reduces a parameter that is a path to its last part.
func aliases(id string) []string {
	var names []string
	if _, name, ok := strings.Cut(id, "::"); ok {
		names = append(names, strings.ReplaceAll(name, "::", "."))
	}
	cut, _, _ := strings.Cut(id, " ")
	return append(names, cut, pathParameter.ReplaceAllString(cut, "${1}${2}"))
}

// find returns the full ids of the tests that a listed id names.
func (c testIndex) find(listed string) []string {
	if _, ran := c.tests[listed]; ran {
		return []string{listed}
	}
	return c.alias[listed]
}

// status returns the worst status of the tests that a listed id names. ran is false if there are none.
func (c testIndex) status(listed string) (status string, ran bool) {
	ids := c.find(listed)
	if len(ids) == 0 {
		return "", false
	}
	worstFirst := []string{"error", "failed", "xpassed", "skipped", "xfailed", "passed"}
	worst := slices.MinFunc(ids, func(a, b string) int {
		return slices.Index(worstFirst, c.tests[a]) - slices.Index(worstFirst, c.tests[b])
	})
	return c.tests[worst], true
}
