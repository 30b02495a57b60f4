package policies

import (
	"regexp"
	"strings"
)

var (
	unittestBare     = regexp.MustCompile(`^(?:-[vqfbc]+|--(?:verbose|quiet|locals|failfast|catch|buffer|durations=\d+))$`)
	unittestDiscover = regexp.MustCompile(`^(?:-([stp])|--(start|top|pattern)(?:-directory)?)(?:=(.+))?$`)
	relativeDir      = regexp.MustCompile(`^[A-Za-z_]\w*(?:/[A-Za-z_]\w*)*/?$`)

	unittestHead  = regexp.MustCompile(`(?m)^(?:FAIL|ERROR): (\w+ \([\w.]+\))`)
	unittestFrame = regexp.MustCompile(`(?m)^  File "([^"\n]+\.py)", line \d+, in (\w+)`)
	unittestClaim = regexp.MustCompile(`(?m)^([A-Za-z_][\w.]*(?:: .*)?)$`)
	unittestName  = regexp.MustCompile(`^(\w+) \(([\w.]+)\)$`)
	noSelectText  = "unrecognized arguments: -k"
)

// unittestAlone narrows a command `python -m unittest`, whose arguments are words, to one test.
// If discovery starts in the current directory, Python can import the test by its id, and the
// result names the id. Otherwise the result keeps the discovery and selects the test with -k.
// Python 3.6 has no -k (canSelect is false), so the result names the id with the directory as a
// package in front. The result is "" if the id or an option has an unknown form.
func unittestAlone(command string, words []string, id string, canSelect bool) string {
	if !dottedID.MatchString(id) {
		return ""
	}
	named, found := []string{command}, []string{command, "discover"}
	discovers := len(words) > 0 && words[0] == "discover"
	place, positional := map[string]string{}, []string{"s", "p", "t"}
	if discovers {
		words = words[1:]
	}
	for i := 0; i < len(words); i++ {
		w, m := words[i], unittestDiscover.FindStringSubmatch(words[i])
		switch {
		case unittestBare.MatchString(w):
			named, found = append(named, w), append(found, w)
		case w == "-k" && i+1 < len(words):
			i++
		case strings.HasPrefix(w, "-k") && len(w) > len("-k"):
		case discovers && m != nil:
			value := m[3]
			if found = append(found, w); value == "" && i+1 < len(words) {
				i++
				value, found = words[i], append(found, words[i])
			}
			place[(m[1] + m[2])[:1]] = strings.Trim(value, `'"`)
		case strings.HasPrefix(w, "-"), discovers && len(positional) == 0:
			return "" // the option may take the next word
		case discovers:
			place[positional[0]], positional = strings.Trim(w, `'"`), positional[1:]
			found = append(found, w)
		}
	}
	top, given := place["t"]
	if !given {
		top = place["s"]
	}
	switch top = strings.TrimPrefix(top, "./"); {
	case top == "" || top == ".":
		return strings.Join(append(named, id), " ")
	case canSelect:
		return strings.Join(append(found, "-k", "'*"+id+"'"), " ")
	case relativeDir.MatchString(top):
		return strings.Join(append(named, strings.ReplaceAll(strings.TrimSuffix(top, "/"), "/", ".")+"."+id), " ")
	}
	return ""
}

// dottedName returns the full name of a test that unittest prints as `test_x (module.Class)` or,
// since Python 3.11, `test_x (module.Class.test_x)`. It returns other IDs unchanged.
func dottedName(id string) string {
	m := unittestName.FindStringSubmatch(id)
	if m == nil {
		return id
	}
	return strings.TrimSuffix(m[2], "."+m[1]) + "." + m[1]
}

// readUnittest reads the failing test from unittest's output: its id, its file, and its claim,
// which is the exception with its message.
func (e *evidence) readUnittest(text string) {
	for _, block := range strings.Split(text, "\n"+strings.Repeat("=", 70)+"\n")[1:] {
		m := unittestHead.FindStringSubmatch(block)
		if m == nil || e.fail.path != "" || e.fail.id != "" && e.fail.id != dottedName(m[1]) {
			continue
		}
		e.fail.id = dottedName(m[1])
		for _, f := range unittestFrame.FindAllStringSubmatch(block, -1) {
			file, inside := strings.CutPrefix(f[1], e.workdir+"/")
			if inside && (f[2] == testFunction(e.fail.id) || e.fail.path == "" && isTest(file)) {
				e.fail.path = file
			}
		}
		_, trace, _ := strings.Cut(block, "\nTraceback ")
		if m := unittestClaim.FindStringSubmatch(trace); m != nil && quotable(m[1]) {
			e.fail.claim = m[1]
		}
	}
}
