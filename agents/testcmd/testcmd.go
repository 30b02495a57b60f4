// Package testcmd reads the command lines and the test IDs of pytest and unittest.
package testcmd

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/shellwords"
)

var (
	runner = regexp.MustCompile(`^(.*(?:^|[\s/])(?:pytest|py\.test|unittest))(\s.*)?$`)
	// flagOption matches pytest options that do not take the next word as their value.
	flagOption = regexp.MustCompile(`^(?:-[qvxslf]+|-r[A-Za-z]+|-[A-Za-z]\d+|--?[\w-]+=.*|--(?:quiet|verbose|exitfirst|showlocals|disable-warnings|` +
		`disable-pytest-warnings|no-header|no-summary|strict|strict-markers|strict-config|no-cov|forked|cache-clear))$`)
	// valueOptions lists pytest options that take the next word as their value.
	valueOptions = strings.Fields(`-k -m -c -o -p -W -n --rootdir --ignore --ignore-glob --deselect --confcutdir --basetemp --override-ini --import-mode
		--durations --maxfail --tb --color --capture --junitxml --junit-xml --log-level --log-cli-level --timeout --numprocesses --dist
		--cov --cov-report --cov-config`)
	plainID  = regexp.MustCompile(`^[\w./:-]+$`)
	dottedID = regexp.MustCompile(`^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$`)
)

// One narrows a test command to one test: it keeps the options and replaces the tests that
// the command names with id. canSelect says whether unittest accepts -k, which Python 3.6 does not (see NoSelect). The result is "" if
// One cannot parse the command or the id.
func One(command, id string, canSelect bool) string {
	m := runner.FindStringSubmatch(command)
	if m == nil || strings.ContainsAny(m[2], "\n;&|<>$`()\\#{}~") {
		return ""
	}
	split, err := shellwords.Split(m[2])
	if err != nil {
		return ""
	}
	words := make([]string, len(split))
	for i, w := range split {
		words[i] = w.Raw
	}
	if strings.HasSuffix(m[1], "unittest") {
		return onlyUnittest(m[1], words, id, canSelect)
	}
	out := []string{m[1]}
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case flagOption.MatchString(w):
			out = append(out, w)
		case slices.Contains(valueOptions, w) && i+1 < len(words):
			i++
			out = append(out, w, words[i])
		case strings.HasPrefix(w, "-"):
			return "" // an unknown option may take the next word
		}
	}
	switch {
	case !strings.Contains(id, "::") || strings.ContainsAny(id, "'\n"):
		return ""
	case !plainID.MatchString(id):
		id = "'" + id + "'"
	}
	return strings.Join(append(out, id), " ")
}

// Function returns the function named in a test ID, without parameters.
func Function(id string) string {
	id, _, _ = strings.Cut(id, "[")
	if i := strings.LastIndex(id, "::"); i >= 0 {
		return id[i+len("::"):]
	}
	return id[strings.LastIndex(id, ".")+1:]
}

// IsTestFile reports whether a file's name marks it as a test.
func IsTestFile(file string) bool {
	base := path.Base(file)
	return strings.HasPrefix(base, "test_") || strings.HasSuffix(base, "_test.py") || base == "test.py" || base == "tests.py" ||
		base == "conftest.py" || slices.Contains(strings.Split(path.Dir(file), "/"), "tests")
}
