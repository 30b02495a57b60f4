package audit

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/tracesmith/tracesmith/schemas"
)

// Extract returns the claims that a text makes, given what earlier steps have shown. It knows a few plain forms
// of sentences and leaves out what it does not understand: questions, conditions, wishes and guesses.
func Extract(text string, r *Record) []schemas.Claim {
	x := extractor{record: r}
	for i, s := range sentences(text) {
		if strings.HasSuffix(s, "?") {
			continue
		}
		x.sentence, x.code = s, codeSpans(s)
		lower := strings.ToLower(s)
		x.values()
		if i == 0 {
			x.answers()
		}
		if strings.Contains(lower, "pass") || strings.Contains(lower, "fail") {
			x.tests(lower)
		}
		if strings.Contains(lower, "stopped") || strings.Contains(lower, "paused") || strings.Contains(lower, "halted") || strings.Contains(lower, "hit") {
			x.stops()
		}
		if strings.Contains(lower, "line ") {
			x.lines()
		}
		if strings.Contains(lower, " calls ") {
			x.calls()
		}
		if strings.Contains(lower, "cause") || strings.Contains(lower, "explain") {
			x.reasons(lower)
		}
	}
	return x.claims
}

// extractor reads one sentence after the other.
type extractor struct {
	record   *Record
	sentence string
	code     [][2]int // the parts of the sentence in backquotes
	claims   []schemas.Claim
}

func (x *extractor) add(c schemas.Claim) {
	for _, old := range x.claims {
		if old.Kind == c.Kind && old.Expression == c.Expression && old.Value == c.Value && old.Test == c.Test && old.Line == c.Line &&
			old.Function == c.Function && schemas.Value(old.Count) == schemas.Value(c.Count) {
			return
		}
	}
	x.claims = append(x.claims, c)
}

// sentences splits a text at full stops, exclamation and question marks and line breaks that end a sentence.
func sentences(text string) []string {
	var out []string
	start, quoted := 0, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '`' {
			quoted = !quoted
		}
		if c == '\n' {
			quoted = false
		}
		ends := c == '\n' || !quoted && (c == '.' || c == '!' || c == '?') && (i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\n')
		if ends && c == '.' && (strings.HasSuffix(text[:i], "i.e") || strings.HasSuffix(text[:i], "e.g") || strings.HasSuffix(text[:i], "..")) {
			ends = i+1 == len(text)
		}
		if ends {
			if s := strings.TrimSpace(text[start : i+1]); s != "" {
				out = append(out, s)
			}
			start = i + 1
		}
	}
	if s := strings.TrimSpace(text[start:]); s != "" {
		out = append(out, s)
	}
	return out
}

func codeSpans(s string) (spans [][2]int) {
	for at := 0; ; {
		open := strings.IndexByte(s[at:], '`')
		if open < 0 {
			return spans
		}
		end := strings.IndexByte(s[at+open+1:], '`')
		if end < 0 {
			return spans
		}
		spans = append(spans, [2]int{at + open, at + open + 1 + end})
		at += open + end + 2
	}
}

// inCode reports whether a place of the sentence is inside backquotes.
func (x *extractor) inCode(at int) bool {
	for _, s := range x.code {
		if s[0] < at && at < s[1] {
			return true
		}
	}
	return false
}

// Kinds of words.
const (
	isCondition = 1 << iota
	isGuess     // or a wish, or a negation; also conditions
	isTestWord
)

var wordKinds = func() map[string]int {
	m := map[string]int{"test": isTestWord, "tests": isTestWord}
	for _, w := range []string{"if", "unless", "would", "should"} {
		m[w] = isCondition | isGuess
	}
	for w := range strings.FieldsSeq(`whether could may might must perhaps maybe probably presumably expect expects expected suppose suspect want wants until
		ought can cannot will not no never guess think assume seem seems imagine suggest suggests likely possibly`) {
		m[w] = isGuess
	}
	return m
}()

// kindsIn returns the kinds of the words in a text.
func kindsIn(text string) (kinds int) {
	previous := ""
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(c rune) bool { return c > 'z' || c != '\'' && !isWordByte(byte(c)) }) {
		word = strings.Trim(word, "'")
		first, _, _ := strings.Cut(word, "'")
		kinds |= wordKinds[first]
		if strings.HasSuffix(word, "n't") || previous == "instead" && word == "of" || previous == "rather" && word == "than" {
			kinds |= isGuess
		}
		previous = word
	}
	return kinds
}

// isCertain reports whether the sentence asserts what it says from start to end: no word before it makes it a
// guess, a wish or a negation, and no condition follows.
func (x *extractor) isCertain(start, end int) bool {
	before := x.sentence[:start]
	if at := strings.LastIndexAny(before, ",;:"); at >= 0 && kindsIn(before)&isCondition == 0 && !x.inCode(at) { // a new clause
		before = before[at:]
	}
	return kindsIn(before)&isGuess == 0 && kindsIn(x.sentence[min(end, len(x.sentence)):])&isCondition == 0
}

var numbers = map[string]int{
	"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
	"eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17,
	"eighteen": 18, "nineteen": 19, "twenty": 20, "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6,
	"seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10,
}

const countWord = `(\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty)`

// count returns the number that a word or digits name.
func count(word string) int {
	if n, ok := numbers[word]; ok {
		return n
	}
	n, _ := strconv.Atoi(strings.TrimRight(word, "stndrh"))
	return n
}

var (
	testDoes  = lazily("^`? (?:(?:is|still|now|currently) )*(fails|failing|failed|passes|passing|passed)\\b(?: with `([^`]+)`)?")
	testParts = lazily(`(?:\b[\w./]+::)?(?:\b\w+::)?$`)
	someTests = lazily(`\b(all (?:of the |the )?)?` + countWord + `(?: (?:of|out of) (?:the |all )?\w+)?(?: tests?(?: cases?)?)? (?:(?:are|is|now|currently|still|were|have|all) )*(pass|passes|passing|passed|fail|fails|failing|failed)\b`)
	allTests  = lazily(`\b(?:all|every) (?:of the |the |my )?(?:unit )?tests? (?:(?:are|now|currently|have) )*(?:pass|passes|passing|passed)\b`)
	onlyTest  = lazily("(?i)\\bthe only failing test is `?((?:[\\w./]+::)?(?:\\w+::)?test_\\w+)")
)

// tests reads claims about results of tests.
func (x *extractor) tests(lower string) {
	if kindsIn(lower)&isTestWord != 0 {
		x.counts(lower)
	}
	if strings.Contains(lower, "only failing test") {
		if m := onlyTest().FindStringSubmatch(x.sentence); m != nil {
			x.add(schemas.Claim{Kind: schemas.ClaimFails, Count: new(1)})
			x.add(schemas.Claim{Kind: schemas.ClaimFails, Test: m[1]})
		}
	}
	for at, from := 0, 0; ; {
		name := strings.Index(x.sentence[at:], "test_")
		if name < 0 {
			return
		}
		start := x.testStart(from, at+name)
		at += name + len("test_")
		end := at + len(firstWord(x.sentence[at:]))
		m := testDoes().FindStringSubmatchIndex(x.sentence[end:])
		if start < 0 || end == at || m == nil {
			continue
		}
		c := schemas.Claim{Kind: schemas.ClaimFails, Test: x.sentence[start:end]}
		at, from = end+m[1], end+m[1]
		if start > 0 && x.sentence[start-1] == '`' {
			start--
		}
		if !x.isCertain(start, at) {
			continue
		}
		if x.sentence[end+m[2]] == 'p' {
			c.Kind = schemas.ClaimPasses
		}
		x.add(c)
		if m[4] >= 0 {
			x.add(schemas.Claim{Kind: schemas.ClaimReports, Test: c.Test, Message: x.sentence[end+m[4] : end+m[5]]})
		}
	}
}

// testStart returns the start of the test id, such as path::Class::test_name, whose last part begins at name; -1 if name is inside
// a word. The id begins after from.
func (x *extractor) testStart(from, name int) int {
	switch before := x.sentence[from:name]; {
	case strings.HasSuffix(before, "::"):
		return from + testParts().FindStringIndex(before)[0]
	case before != "" && isWordByte(before[len(before)-1]):
		return -1
	}
	return name
}

// counts reads claims about numbers of tests.
func (x *extractor) counts(lower string) {
	for _, m := range someTests().FindAllStringSubmatchIndex(lower, -1) {
		if !x.isCertain(m[0], m[1]) || len(lower) != len(x.sentence) {
			continue
		}
		n := count(lower[m[4]:m[5]])
		c := schemas.Claim{Kind: schemas.ClaimFails, Count: &n}
		if strings.HasPrefix(lower[m[6]:m[7]], "pass") {
			c.Kind = schemas.ClaimPasses
			if m[2] >= 0 {
				x.add(schemas.Claim{Kind: schemas.ClaimFails, Count: new(0)})
			}
		}
		x.add(c)
	}
	if m := allTests().FindStringIndex(lower); m != nil && x.isCertain(m[0], m[1]) {
		x.add(schemas.Claim{Kind: schemas.ClaimFails, Count: new(0)})
	}
}

var (
	theCause = lazily(`\b(?:the|root) cause(?: of [^:,]*)?(?: is|:) |\bis the (?:root )?cause\b`)
	isOpen   = lazily(`^(?:still |yet )?(?:not|unclear|unknown|open)\b`)
	explains = lazily(`\b(?:(does not|doesn't|cannot|do not|don't) )?(?:fully )?explains?\b`)
)

// reasons reads stated causes. Observations do not decide them.
func (x *extractor) reasons(lower string) {
	if m := theCause().FindStringIndex(lower); m != nil && len(lower) == len(x.sentence) && !isOpen().MatchString(lower[m[1]:]) && x.isCertain(m[0], len(lower)) {
		reason := x.sentence[m[1]:]
		if strings.HasPrefix(lower[m[0]:], "is ") {
			reason = x.sentence[:m[0]]
		}
		x.add(schemas.Claim{Kind: schemas.ClaimCause, Reason: strings.TrimSpace(reason)})
	}
	if m := explains().FindStringSubmatch(lower); m != nil {
		kind := schemas.ClaimExplains
		if m[1] != "" {
			kind = schemas.ClaimDoesNotExplain
		}
		x.add(schemas.Claim{Kind: kind, Reason: x.sentence})
	}
}

// lazily returns a function that compiles a pattern at its first call, because programs that audit nothing
// should start fast.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
