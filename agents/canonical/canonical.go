// Package canonical removes the incidental differences between two runs of the same calls, such
// as durations and memory addresses, from the answers of an environment. After that, sandboxes
// of different drivers with the same version of Python give the same answers.
//
// Sandboxes already fix environment variables, locale, hash seed, time zone, names, umask, the
// order of directory listings and commit times. docs/internals/canonical.md lists the rules for
// the rest.
package canonical

import (
	"regexp"
	"strings"
)

// Rule removes one kind of difference.
type Rule struct {
	Name string
	Why  string // the reason for the difference
	// Text rewrites a text. It is nil if the rule is only about fields.
	Text func(string) string
	// Fields lists the fields to drop from JSON objects at any depth.
	Fields []string
	// Example holds JSON values from two runs. This rule makes them equal, and no other does.
	Example [2]string
}

// Rules lists all rules. Their order does not matter.
var Rules = []Rule{Durations, Addresses, TemporaryNames, LocalPlaces, Clock, LogHashes}

// Durations removes how long something took. It also rewrites the rulers around pytest's
// summary, because their length depends on the width of the number.
var Durations = Rule{
	Name: "durations", Why: "no two runs take the same time",
	Text: func(s string) string {
		s = replace(s, " in ", pytestTime, "$1$2$3")
		s = replace(s, "= ", pytestRuler, "=== $1 ===")
		s = replace(s, "Ran ", unittestTime, "$1")
		return replace(s, "\t", shellTime, "$1\t0m0.000s")
	},
	Fields:  []string{"duration_ms"},
	Example: [2]string{`"======= 1 failed, 2 passed in 0.98s ======="`, `"====== 1 failed, 2 passed in 10.02s ======="`},
}

// replace applies pattern only if s contains word, which is part of every match. Most texts do
// not contain word, and searching for it is much faster than matching the pattern.
func replace(s, word string, pattern *regexp.Regexp, with string) string {
	if !strings.Contains(s, word) {
		return s
	}
	return pattern.ReplaceAllString(s, with)
}

const pytestCounts = `(\d+ [a-z]+(?: [a-z]+)?(?:, \d+ [a-z]+(?: [a-z]+)?)*|no tests ran|(?:\d+/)?\d+ tests? collected(?: \(\d+ deselected\))?)`

var (
	pytestTime   = regexp.MustCompile(`(?m)^(=+ )?` + pytestCounts + ` in \d+\.\d+s(?: \(\d+:\d\d:\d\d\))?( =+)?$`)
	pytestRuler  = regexp.MustCompile(`(?m)^=+ ` + pytestCounts + ` =+$`)
	unittestTime = regexp.MustCompile(`(?m)^(Ran \d+ tests?) in \d+\.\d+s$`)
	shellTime    = regexp.MustCompile(`(?m)^(real|user|sys)\t\d+m\d+\.\d+s$`)
)

// Addresses removes the memory addresses in Python's representations of objects and in the
// traces of faulthandler.
var Addresses = Rule{
	Name: "addresses", Why: "the kernel places memory at random",
	Text:    func(s string) string { return replace(s, " 0x", address, "$1 0x...") },
	Example: [2]string{`"<Account object at 0x7f2edce8b310>"`, `"<Account object at 0x7f4fb83310d0>"`},
}

var address = regexp.MustCompile(`\b(at|[Tt]hread) 0x[0-9a-f]{6,16}\b`)

// TemporaryNames removes the random part of names that Python's tempfile and mktemp make.
var TemporaryNames = Rule{
	Name: "temporary names", Why: "they are drawn from the system's random numbers",
	Text:    func(s string) string { return temporary.ReplaceAllString(s, "/tmp/tmp...") },
	Example: [2]string{`"saved /tmp/tmpk3v_x9ab\n/tmp/tmp.lQKZtjbmd4"`, `"saved /tmp/tmp0abcdefg\n/tmp/tmp.F328xT7m7s"`},
}

var temporary = regexp.MustCompile(`/tmp/tmp(?:[a-z0-9_]{8}|\.[A-Za-z0-9]{10})\b`)

// LocalPlaces removes the directories of sandboxes of kind local.
var LocalPlaces = Rule{
	Name: "local places", Why: "a local sandbox is a new directory each time",
	Text:    func(s string) string { return localPlace.ReplaceAllString(s, "/tracesmith-local-...") },
	Example: [2]string{`"/tmp/tracesmith-local-2520797677/work/a.py"`, `"/var/tmp/tracesmith-local-17/work/a.py"`},
}

var localPlace = regexp.MustCompile(`(?:/[^\s/'":;,()]+)*/tracesmith-local-[0-9]+`)

// Clock removes times as ls, stat, date and Python's logging write them.
var Clock = Rule{
	Name: "clock", Why: "the two runs are not at the same time",
	Text: func(s string) string {
		s = listTime.ReplaceAllString(s, "(time)")
		s = dateTime.ReplaceAllString(s, "(time)")
		return isoTime.ReplaceAllString(s, "(time)")
	},
	Example: [2]string{`"-rw-r--r-- 1 user user 65 Nov 21 06:37 README.md"`, `"-rw-r--r-- 1 user user 65 Dec  1 23:07 README.md"`},
}

var (
	listTime = regexp.MustCompile(`\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ 0-3]\d \d\d:\d\d\b`)
	dateTime = regexp.MustCompile(`\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \(time\)(?::\d\d)? UTC \d{4}\b`)
	isoTime  = regexp.MustCompile(`\b20\d\d-[01]\d-[0-3]\d[ T][0-2]\d:[0-5]\d:[0-6]\d(?:[.,]\d+)?(?: ?[+-]\d\d:?\d\d|Z)?`)
)

// LogHashes drops the hashes of texts that the other rules change.
var LogHashes = Rule{
	Name: "hashes of logs", Why: "a log contains durations, so its hash differs",
	Fields:  []string{"log_sha256"},
	Example: [2]string{`{"log_sha256":"3247c5"}`, `{"log_sha256":"1aa0e4"}`},
}

// Text applies the given rules to a text. Without rules, it applies all of Rules.
func Text(s string, rules ...Rule) string {
	if len(rules) == 0 {
		rules = Rules
	}
	for _, r := range rules {
		if r.Text != nil {
			s = r.Text(s)
		}
	}
	return s
}
