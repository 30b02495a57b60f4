package verify

import (
	"cmp"
	"regexp"
	"strings"
	"unicode"
)

const maxCause = 300 // bytes

var (
	colors = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
	// A line between the reports of two errors of pytest or unittest.
	ruler = regexp.MustCompile(`^(_{3,} .* _{3,}|-{40,}|={3,}|={3,} .* ={3,}|!{3,}.*)$`)
	// An exception as pytest marks it, and at the end of a traceback.
	marked    = regexp.MustCompile(`^(?:E {1,3}|INTERNALERROR> )([A-Za-z_][\w.]*(?:: .*)?)$`)
	raised    = regexp.MustCompile(`^[A-Za-z_][\w.]*(?:: .*)?$`)
	position  = regexp.MustCompile(`File "([^"]*)", line (\d+)`)
	loading   = regexp.MustCompile(`^ImportError while loading conftest '([^']*)'`)
	inSummary = regexp.MustCompile(`^ERROR \S+ - (.+)$`)
	complaint = regexp.MustCompile(`^(?:\S+: error: |ERROR: )(\S.*)$`)
	framing   = regexp.MustCompile(`^\s*(rootdir|inifile|configfile|plugins|cachedir|platform)\b.*: |^no tests ran|^\d+ errors? in|^Ran \d+ test|^FAILED \(`)
)

// Cause is the line of a test runner's output that says why the tests did not run: the first error
// that it reports, else its last line.
func Cause(output []byte) string {
	text := colors.ReplaceAllString(strings.ToValidUTF8(string(output), "\uFFFD"), "")
	lines := strings.Split(strings.ReplaceAll(text, "\r", ""), "\n")
	cause := cmp.Or(reported(lines), complained(lines), last(lines))
	cause = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, cause)
	return strings.ToValidUTF8(cause[:min(len(cause), maxCause)], "")
}

// reported is the exception of the first report that has one. Of a chain of exceptions it is the
// last, which was raised.
func reported(lines []string) string {
	found, place, conftest, traceback := "", "", "", false
	for _, line := range lines {
		if ruler.MatchString(line) {
			if found != "" {
				break
			}
			place, traceback = "", false
			continue
		}
		if m := loading.FindStringSubmatch(line); m != nil {
			conftest = m[1] + ": "
		}
		if m := position.FindStringSubmatch(line); m != nil {
			place = " (" + m[1] + ", line " + m[2] + ")"
		}
		begins := strings.HasPrefix(line, "Traceback (most recent call last)")
		switch m := marked.FindStringSubmatch(line); {
		case m != nil:
			found = m[1]
		case traceback && !begins && raised.MatchString(line):
			found, traceback = line, false
		}
		traceback = traceback || begins
		if strings.HasPrefix(found, "SyntaxError") || strings.HasPrefix(found, "IndentationError") || strings.HasPrefix(found, "TabError") {
			found, place = found+place, ""
		}
	}
	if found == "" {
		return ""
	}
	return conftest + found
}

// complained is the error message of a runner that ends without running anything.
func complained(lines []string) string {
	for _, form := range []*regexp.Regexp{inSummary, complaint} {
		for _, line := range lines {
			if m := form.FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[1], "usage:") {
				return m[1]
			}
		}
	}
	return ""
}

// last is the last line that is not part of a frame or summary.
func last(lines []string) string {
	words := ""
	for _, line := range lines {
		if line = strings.TrimRight(line, " \t"); line != "" && !ruler.MatchString(line) && !framing.MatchString(line) {
			words = strings.TrimSpace(line)
		}
	}
	return words
}
