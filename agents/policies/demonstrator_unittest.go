package policies

import (
	"regexp"
	"strings"
)

var (
	unittestFlag     = regexp.MustCompile(`^(?:-[vqfbc]+|--(?:verbose|quiet|locals|failfast|catch|buffer|durations=\d+))$`)
	unittestDiscover = regexp.MustCompile(`^(?:-([stp])|--(start|top|pattern)(?:-directory)?)(?:=(.+))?$`)
	relativeDir      = regexp.MustCompile(`^[A-Za-z_]\w*(?:/[A-Za-z_]\w*)*/?$`)

	unittestHead  = regexp.MustCompile(`(?m)^(?:FAIL|ERROR): (\w+ \([\w.]+\))`)
	unittestFrame = regexp.MustCompile(`(?m)^  File "([^"\n]+\.py)", line \d+, in (\w+)`)
	unittestError = regexp.MustCompile(`(?m)^([A-Za-z_][\w.]*(?:: .*)?)$`)
	unittestName  = regexp.MustCompile(`^(\w+) \(([\w.]+)\)$`)
	noSelectText  = "unrecognized arguments: -k"
)

// onlyUnittest narrows a command `python -m unittest`, whose arguments are words, to one test.
// If discovery starts in the current directory, Python can import the test by its id, and the
// result contains the id. Otherwise the result keeps the discovery and selects the test with -k.
// Python 3.6 does not have -k (canSelect is false), so the result contains the id with the
// directory as a package in front. The result is "" if the id or an option has an unknown form.
func onlyUnittest(command string, words []string, id string, canSelect bool) string {
	if !dottedID.MatchString(id) {
		return ""
	}
	byID, byDiscovery := []string{command}, []string{command, "discover"} // the words of the two possible results
	discovers := len(words) > 0 && words[0] == "discover"
	options := map[string]string{}        // values of the options of discovery, by letter
	positional := []string{"s", "p", "t"} // letters of the options that further positional arguments set
	if discovers {
		words = words[1:]
	}
	for i := 0; i < len(words); i++ {
		w, m := words[i], unittestDiscover.FindStringSubmatch(words[i])
		switch {
		case unittestFlag.MatchString(w):
			byID, byDiscovery = append(byID, w), append(byDiscovery, w)
		case w == "-k" && i+1 < len(words):
			i++
		case strings.HasPrefix(w, "-k") && len(w) > len("-k"):
		case discovers && m != nil:
			value := m[3]
			if byDiscovery = append(byDiscovery, w); value == "" && i+1 < len(words) {
				i++
				value, byDiscovery = words[i], append(byDiscovery, words[i])
			}
			options[(m[1] + m[2])[:1]] = strings.Trim(value, `'"`)
		case strings.HasPrefix(w, "-"), discovers && len(positional) == 0:
			return "" // the option may take the next word
		case discovers:
			options[positional[0]], positional = strings.Trim(w, `'"`), positional[1:]
			byDiscovery = append(byDiscovery, w)
		}
	}
	top, ok := options["t"]
	if !ok {
		top = options["s"]
	}
	switch top = strings.TrimPrefix(top, "./"); {
	case top == "" || top == ".":
		return strings.Join(append(byID, id), " ")
	case canSelect:
		return strings.Join(append(byDiscovery, "-k", "'*"+id+"'"), " ")
	case relativeDir.MatchString(top):
		return strings.Join(append(byID, strings.ReplaceAll(strings.TrimSuffix(top, "/"), "/", ".")+"."+id), " ")
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

// readUnittest reads the failing test from unittest's output: its id, its file, and its message,
// which is the exception with its text.
func (e *evidence) readUnittest(text string) {
	for _, block := range strings.Split(text, "\n"+strings.Repeat("=", 70)+"\n")[1:] {
		m := unittestHead.FindStringSubmatch(block)
		if m == nil || e.failure.path != "" || e.failure.id != "" && e.failure.id != dottedName(m[1]) {
			continue
		}
		e.failure.id = dottedName(m[1])
		for _, f := range unittestFrame.FindAllStringSubmatch(block, -1) {
			file, inside := strings.CutPrefix(f[1], e.workdir+"/")
			if inside && (f[2] == testFunction(e.failure.id) || e.failure.path == "" && isTest(file)) {
				e.failure.path = file
			}
		}
		_, trace, _ := strings.Cut(block, "\nTraceback ")
		if m := unittestError.FindStringSubmatch(trace); m != nil && quotable(m[1]) {
			e.failure.message = m[1]
		}
	}
}
