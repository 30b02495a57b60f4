package baseline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tracesmith/tracesmith/agents/oracle/write"
	"github.com/tracesmith/tracesmith/agents/testcmd"
)

// orders has the rules by which a baseline chooses functions. Each returns lines in the functions to stop in, in order.
var orders = map[string]func(*search) []write.Place{
	"traceback": (*search).tracebackOrder,
	"ochiai":    (*search).ochiaiOrder,
	"random":    (*search).randomOrder,
}

// tracebackOrder returns the lines of the program in the traceback of the failing test, innermost first, and then the
// functions that the test calls.
func (s *search) tracebackOrder() []write.Place {
	var out []write.Place
	for _, p := range slices.Backward(s.Test.Frames) {
		if !testcmd.IsTestFile(p.File) {
			out = append(out, p)
		}
	}
	functions := s.program()
	for _, name := range s.TestCalls() {
		for _, f := range functions {
			if f.Name == name {
				out = append(out, f.Place)
			}
		}
	}
	return out
}

// randomOrder returns the program's functions in a random order.
func (s *search) randomOrder() []write.Place {
	var out []write.Place
	for _, f := range s.program() {
		out = append(out, f.Place)
	}
	rank := func(p write.Place) uint64 { return s.Draw(1<<32, fmt.Sprintf("%s:%d", p.File, p.Line)) }
	slices.SortFunc(out, func(a, b write.Place) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// program returns the functions that are not in tests, as far as they were shown.
func (s *search) program() []write.Function {
	return slices.DeleteFunc(slices.Clone(s.Functions()), func(f write.Function) bool { return f.IsClass || testcmd.IsTestFile(f.File) })
}
