package testcmd

import (
	"regexp"
	"strings"
)

var (
	unittestFlag     = regexp.MustCompile(`^(?:-[vqfbc]+|--(?:verbose|quiet|locals|failfast|catch|buffer|durations=\d+))$`)
	unittestDiscover = regexp.MustCompile(`^(?:-([stp])|--(start|top|pattern)(?:-directory)?)(?:=(.+))?$`)
	relativeDir      = regexp.MustCompile(`^[A-Za-z_]\w*(?:/[A-Za-z_]\w*)*/?$`)

	unittestName = regexp.MustCompile(`^(\w+) \(([\w.]+)\)$`)
)

// NoSelect is what the debugger prints if unittest has no option -k.
const NoSelect = "unrecognized arguments: -k"

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

// Dotted returns the full name of a test that unittest prints as `test_x (module.Class)` or, since
// Python 3.11, `test_x (module.Class.test_x)`. It returns other IDs unchanged.
func Dotted(id string) string {
	m := unittestName.FindStringSubmatch(id)
	if m == nil {
		return id
	}
	return strings.TrimSuffix(m[2], "."+m[1]) + "." + m[1]
}
