package discover

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	pep440 "github.com/aquasecurity/go-pep440-version"
)

// Interpreter is an installed Python.
type Interpreter struct {
	Path    string // "" for the system's Python
	Version string // such as 3.12.1
	Pytest  bool   // whether it can import pytest
}

// oldestPython is the oldest version of Python that uv and the hooks in the test runner support.
const oldestPython = "3.8"

func (p Interpreter) version() pep440.Version {
	v, err := pep440.Parse(p.Version)
	if err != nil {
		v, _ = pep440.Parse("0")
	}
	return v
}

// compareMinor compares two interpreters by their minor versions.
func compareMinor(a, b Interpreter) int {
	x, errX := pep440.Parse(a.minor())
	y, errY := pep440.Parse(b.minor())
	if errX != nil || errY != nil {
		return 0
	}
	return x.Compare(y)
}

// minor returns the minor version, such as 3.12.
func (p Interpreter) minor() string {
	parts := strings.SplitN(p.Version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

func (p Interpreter) String() string {
	return fmt.Sprintf("%s (%s)", p.Version, cmp.Or(p.Path, "/usr/bin/python3"))
}

// requirePython records a version specifier.
func (e *evidence) requirePython(specifier, from string) {
	if specifier = strings.TrimSpace(specifier); specifier != "" {
		e.python = append(e.python, Fact{"python", specifier, from})
		e.addFact("python", specifier, from)
	}
}

// addClassifiers records the minor versions of Python that trove classifiers name.
func (e *evidence) addClassifiers(classifiers []string, from string) {
	var found []string
	for _, c := range classifiers {
		if m := classifier.FindStringSubmatch(c); m != nil && !slices.Contains(e.classifiers, m[1]) {
			found = append(found, m[1])
		}
	}
	if len(found) > 0 {
		e.classifiers = append(e.classifiers, found...)
		e.addFact("python", "tested with "+strings.Join(found, " "), from)
	}
}

// NoPythonError means that the repository does not allow any installed interpreter.
type NoPythonError struct {
	Needed    []Fact // version specifiers of the repository
	Installed []Interpreter
}

func (e *NoPythonError) Error() string {
	var needed, installed []string
	for _, f := range e.Needed {
		needed = append(needed, fmt.Sprintf("Python %s (%s)", f.Value, f.From))
	}
	for _, p := range e.Installed {
		installed = append(installed, p.String())
	}
	if len(needed) == 0 {
		needed = []string{"Python " + oldestPython + " or newer"}
	}
	if len(installed) == 0 {
		installed = []string{"none"}
	}
	return fmt.Sprintf("no installed Python fits: the repository needs %s; installed: %s: install a version that fits, or name one with sandbox.python",
		strings.Join(needed, " and "), strings.Join(installed, ", "))
}

// releasedIn are the months in which the first releases of minor versions appeared.
var releasedIn = parsePairs("3.8 2019-10 3.9 2020-10 3.10 2021-10 3.11 2022-10 3.12 2023-10 3.13 2024-10 3.14 2025-10")

// inTime returns the interpreters whose minor version had been released at a time, or all if there are none or the time
// is zero: packages of that time may not work with a newer Python.
func inTime(installed []Interpreter, at time.Time) []Interpreter {
	var out []Interpreter
	for _, p := range installed {
		if month := releasedIn[p.minor()]; month != "" && month <= at.Format("2006-01") {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return installed
	}
	return out
}

// interpreters returns the installed interpreters that the repository allows, best first: those that its classifiers
// name from new to old, then the others from old to new. If the repository says nothing about versions, the system's
// Python comes first.
func (e *evidence) interpreters(installed []Interpreter) ([]Interpreter, error) {
	var allowed []Interpreter
	floor, err := pep440.NewSpecifiers(">=" + oldestPython)
	if err != nil {
		return nil, err
	}
	for _, p := range installed {
		fits := floor.Check(p.version())
		for _, f := range e.python {
			if spec, err := pep440.NewSpecifiers(f.Value); err == nil && !spec.Check(p.version()) {
				fits = false
			}
		}
		if fits {
			allowed = append(allowed, p)
		}
	}
	if len(allowed) == 0 {
		return nil, &NoPythonError{e.python, installed}
	}
	// Within a minor version the system's Python comes first, because other machines are more likely to have it.
	newest := func(a, b Interpreter) int {
		return cmp.Or(compareMinor(b, a), cmp.Compare(min(1, len(a.Path)), min(1, len(b.Path))), b.version().Compare(a.version()))
	}
	slices.SortStableFunc(allowed, newest)
	if len(e.python)+len(e.classifiers) == 0 {
		slices.SortStableFunc(allowed, func(a, b Interpreter) int { return cmp.Compare(min(1, len(a.Path)), min(1, len(b.Path))) })
		return allowed, nil
	}
	var named, other []Interpreter
	for _, p := range allowed {
		if len(e.classifiers) == 0 || slices.Contains(e.classifiers, p.minor()) {
			named = append(named, p)
		} else {
			other = append(other, p)
		}
	}
	slices.Reverse(other)
	return append(named, other...), nil
}
