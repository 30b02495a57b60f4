package policies

import (
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

// onlyTest narrows a test command to one test: it keeps the options and replaces the tests that
// the command names with id. canSelect says whether unittest accepts -k. The result is "" if
// onlyTest cannot parse the command or the id.
func onlyTest(command, id string, canSelect bool) string {
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
