package check

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// testName is the name of one listed test in its file: a function, perhaps in nested classes, and
// perhaps with a parameter.
type testName struct {
	classes         []string
	function, param string
	unittest        bool
}

// testFiles finds the files of the listed tests by their ids, including unprotected files and those
// of hidden tests. For a task without ids, it finds the files that are named like tests.
func testFiles(spec schemas.TestSpec, files []workspace.File) map[string][]testName {
	out := map[string][]testName{}
	for _, id := range slices.Concat(spec.FailToPass, spec.PassToPass) {
		if file, rest, ok := strings.Cut(id, "::"); ok {
			name, param, _ := strings.Cut(rest, "[")
			if strings.Contains(name, ".") {
				continue // a doctest: its file is the program
			}
			parts := strings.Split(name, "::")
			last := len(parts) - 1
			out[file] = append(out[file], testName{parts[:last], parts[last], strings.TrimSuffix(param, "]"), false})
			continue
		}
		parts := strings.Split(id, ".")
		if len(parts) < 3 {
			continue
		}
		module := strings.Join(parts[:len(parts)-2], "/") + ".py"
		for _, f := range files {
			if f.Path == module || strings.HasSuffix(f.Path, "/"+module) {
				out[f.Path] = append(out[f.Path], testName{parts[len(parts)-2 : len(parts)-1], parts[len(parts)-1], "", true})
			}
		}
	}
	if spec.Method == schemas.VerifyExitCode {
		for _, f := range files {
			base := path.Base(f.Path)
			if strings.HasSuffix(base, ".py") && (strings.HasPrefix(base, "test_") || strings.HasSuffix(base, "_test.py")) {
				out[f.Path] = nil
			}
		}
	}
	return out
}

// group is a class of a stub, or its module: functions with their parameters, and nested classes,
// in order.
type group struct {
	name      string
	unittest  bool
	functions []string
	params    map[string][]string
	inside    []*group
}

func (s *group) class(name string) *group {
	at := slices.IndexFunc(s.inside, func(c *group) bool { return c.name == name })
	if at < 0 {
		s.inside, at = append(s.inside, &group{name: name, params: map[string][]string{}}), len(s.inside)
	}
	return s.inside[at]
}

// stub is a test file whose tests have no assertion.
func stub(tests []testName) []byte {
	module := &group{params: map[string][]string{}}
	for _, t := range tests {
		at := module
		for _, name := range t.classes {
			at = at.class(name)
			// pytest finds a class with another name only if it is a TestCase.
			at.unittest = at.unittest || t.unittest || !strings.HasPrefix(name, "Test")
		}
		if !slices.Contains(at.functions, t.function) {
			at.functions = append(at.functions, t.function)
		}
		if t.param != "" {
			at.params[t.function] = append(at.params[t.function], t.param)
		}
	}
	var b strings.Builder
	b.WriteString("import unittest\n")
	module.write(&b, "")
	b.WriteString("if __name__ == '__main__': unittest.main()\n")
	return []byte(b.String())
}

func (s *group) write(b *strings.Builder, indent string) {
	for _, function := range s.functions {
		var arguments []string
		if indent != "" {
			arguments = append(arguments, "self")
		}
		if list := s.params[function]; len(list) > 0 {
			fmt.Fprintf(b, "%simport pytest\n%[1]s@pytest.mark.parametrize('parameter', %s, ids=%[2]s)\n", indent, pythonList(list))
			arguments = append(arguments, "parameter")
		}
		fmt.Fprintf(b, "%sdef %s(%s): pass\n", indent, function, strings.Join(arguments, ", "))
	}
	for _, c := range s.inside {
		base := ""
		if c.unittest && len(c.params) == 0 {
			base = "(unittest.TestCase)"
		}
		fmt.Fprintf(b, "%sclass %s%s:\n", indent, c.name, base)
		c.write(b, indent+"    ")
	}
}

// pythonList is a list of strings in Python.
func pythonList(list []string) []byte {
	text, _ := json.Marshal(list) // strings always can be encoded
	return text
}
