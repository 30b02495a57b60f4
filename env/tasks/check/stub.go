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

// testName is the name of a listed test in its file: a function, which may be in nested classes and have a parameter.
type testName struct {
	classes         []string
	function, param string
	unittest        bool
}

// testFiles returns the files of the listed tests, with the names of the tests. It finds them by the ids of the tests,
// so they include unprotected files and those of hidden tests. For a task without ids, it returns the files that are
// named like tests.
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

// scope is the module or a class of a test file, with its functions, their parameters, and its classes, in order.
type scope struct {
	name      string
	unittest  bool
	functions []string
	params    map[string][]string
	nested    []*scope
}

// class returns the class of that name in a scope, and adds it if it is missing.
func (s *scope) class(name string) *scope {
	at := slices.IndexFunc(s.nested, func(c *scope) bool { return c.name == name })
	if at < 0 {
		s.nested, at = append(s.nested, &scope{name: name, params: map[string][]string{}}), len(s.nested)
	}
	return s.nested[at]
}

// stub returns a test file with tests of the given names that assert nothing.
func stub(tests []testName) []byte {
	module := &scope{params: map[string][]string{}}
	for _, t := range tests {
		s := module
		for _, name := range t.classes {
			s = s.class(name)
			// If the name of a class does not start with Test, pytest collects it only if it is a TestCase.
			s.unittest = s.unittest || t.unittest || !strings.HasPrefix(name, "Test")
		}
		if !slices.Contains(s.functions, t.function) {
			s.functions = append(s.functions, t.function)
		}
		if t.param != "" {
			s.params[t.function] = append(s.params[t.function], t.param)
		}
	}
	var b strings.Builder
	b.WriteString("import unittest\n")
	module.write(&b, "")
	b.WriteString("if __name__ == '__main__': unittest.main()\n")
	return []byte(b.String())
}

func (s *scope) write(b *strings.Builder, indent string) {
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
	for _, c := range s.nested {
		base := ""
		if c.unittest && len(c.params) == 0 {
			base = "(unittest.TestCase)"
		}
		fmt.Fprintf(b, "%sclass %s%s:\n", indent, c.name, base)
		c.write(b, indent+"    ")
	}
}

// pythonList returns a list of strings as Python code.
func pythonList(list []string) []byte {
	text, _ := json.Marshal(list) // encoding strings cannot fail
	return text
}
