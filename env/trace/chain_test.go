package trace

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
)

// Traces show state outside of local variables: the items of self, attributes of containers and functions,
// iterators, buffers, and globals of the module.
func TestTraceShowsHiddenState(t *testing.T) {
	p := program(`import io

SEEN = []


class Bag(dict):
    def __init__(self):
        dict.__init__(self)
        self.notes = {}

    def put(self, key):
        self[key] = 1

    def note(self, key):
        self.notes[key] = 1


def count():
    count.calls = 1


def remember(x):
    SEEN.append(x)


def write(out):
    out.write("a")


def skip(numbers):
    next(numbers)
    return None
`, `bag = p.Bag()
bag.put("a")
bag.note("a")
p.count()
p.remember(1)
out = p.io.StringIO()
p.write(out)
numbers = iter([1, 2, 3])
p.skip(numbers)
f = p.count
got = [list(bag), list(bag.notes), f.calls, p.SEEN, out.getvalue(), list(numbers)]
self.assertEqual(got, [])`)
	for name, c := range map[string]struct{ from, to, buggy, fixed string }{
		"self":    {"self[key] = 1", "self[key] = 2", "p.Bag {'a': 1}", "p.Bag {'a': 2}"},
		"bag":     {"self.notes[key] = 1", "self.notes[key] = 2", "p.Bag {'a': 1}(notes={'a': 1})", "p.Bag {'a': 1}(notes={'a': 2})"},
		"f":       {"calls = 1", "calls = 2", "function count(calls=1)", "function count(calls=2)"},
		"SEEN":    {"append(x)", "append(-x)", "[1]", "[-1]"},
		"out":     {`write("a")`, `write("b")`, "_io.StringIO('a')", "_io.StringIO('b')"},
		"numbers": {"next(numbers)\n", "next(numbers), next(numbers)\n", "list_iterator([1, 2, 3], 1)", "list_iterator([1, 2, 3], 2)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := p.trace(t, "", "test", c.from, c.to)
			found := slices.ContainsFunc(got.Points, func(q schemas.TracePoint) bool { return valueOf(q.Vars, name) == [2]string{c.buggy, c.fixed} })
			if !found {
				t.Errorf("no point has these values: the first difference is %+v, the failure %+v", got.D0, got.Failure)
			}
		})
	}
}

// A chain leads from the first value that differs between the buggy and the fixed program to the failure. It has
// the places in between at which the two programs begin to take different paths.
func TestTraceChainHasControlFlow(t *testing.T) {
	p := program(`LEVELS = {"low": 1}


def level(name):
    return LEVELS[name] * 2


def check(name):
    value = level(name)
    if value > 2:
        return refuse(name)
    return value


def refuse(name):
    raise ValueError(name)
`, `self.assertEqual(p.check("low"), 2)`)
	got := p.with("p.py", "* 2", "* 3").trace(t, "", "test", "* 3", "* 2")
	var kinds []string
	for _, link := range got.Chain {
		kinds = append(kinds, link.Kind+" "+link.Function)
	}
	if diff := cmp.Diff([]string{"value level", "flow check", "failure refuse"}, kinds); diff != "" {
		t.Fatalf("chain (-want +got):\n%s", diff)
	}
	if link := got.Chain[1]; link.Line != 11 || link.FixedLine != 12 || valueOf(link.Vars, "value") != [2]string{"3", "2"} {
		t.Errorf("link %+v", link)
	}
}
