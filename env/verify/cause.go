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
	// separator matches a line between the reports of two errors of pytest or unittest.
	separator = regexp.MustCompile(`^(_{3,} .* _{3,}|-{40,}|={3,}|={3,} .* ={3,}|!{3,}.*)$`)
	// pytestException matches an exception that pytest marks with E, and tracebackException one at
	// the end of a traceback.
	pytestException    = regexp.MustCompile(`^(?:E {1,3}|INTERNALERROR> )([A-Za-z_][\w.]*(?:: .*)?)$`)
	tracebackException = regexp.MustCompile(`^[A-Za-z_][\w.]*(?:: .*)?$`)
	position           = regexp.MustCompile(`File "([^"]*)", line (\d+)`)
	conftestError      = regexp.MustCompile(`^ImportError while loading conftest '([^']*)'`)
	inSummary          = regexp.MustCompile(`^ERROR \S+ - (.+)$`)
	usageError         = regexp.MustCompile(`^(?:\S+: error: |ERROR: )(\S.*)$`)
	frameLine          = regexp.MustCompile(`^\s*(rootdir|inifile|configfile|plugins|cachedir|platform)\b.*: |^no tests ran|^\d+ errors? in|^Ran \d+ test|^FAILED \(`)
)

// Cause returns the line of a test runner's output that says why the tests did not run: the first error
// in the output or, if there is none, the last line.
func Cause(output []byte) string {
	text := colors.ReplaceAllString(strings.ToValidUTF8(string(output), "\uFFFD"), "")
	lines := strings.Split(strings.ReplaceAll(text, "\r", ""), "\n")
	cause := cmp.Or(firstException(lines), errorMessage(lines), lastLine(lines))
	cause = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, cause)
	return strings.ToValidUTF8(cause[:min(len(cause), maxCause)], "")
}

// firstException returns the exception of the first error report that has one. From a chain of
// exceptions, it returns the last, which is the one that was not caught.
func firstException(lines []string) string {
	found, place, conftest, traceback := "", "", "", false
	for _, line := range lines {
		if separator.MatchString(line) {
			if found != "" {
				break
			}
			place, traceback = "", false
			continue
		}
		if m := conftestError.FindStringSubmatch(line); m != nil {
			conftest = m[1] + ": "
		}
		if m := position.FindStringSubmatch(line); m != nil {
			place = " (" + m[1] + ", line " + m[2] + ")"
		}
		begins := strings.HasPrefix(line, "Traceback (most recent call last)")
		switch m := pytestException.FindStringSubmatch(line); {
		case m != nil:
			found = m[1]
		case traceback && !begins && tracebackException.MatchString(line):
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

// errorMessage returns the error message of a runner that ended without running a test.
func errorMessage(lines []string) string {
	for _, pattern := range []*regexp.Regexp{inSummary, usageError} {
		for _, line := range lines {
			if m := pattern.FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[1], "usage:") {
				return m[1]
			}
		}
	}
	return ""
}

// lastLine returns the last line that is not part of the runner's header or summary.
func lastLine(lines []string) string {
	last := ""
	for _, line := range lines {
		if line = strings.TrimRight(line, " \t"); line != "" && !separator.MatchString(line) && !frameLine.MatchString(line) {
			last = strings.TrimSpace(line)
		}
	}
	return last
}
