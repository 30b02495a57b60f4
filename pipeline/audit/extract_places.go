package audit

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

const (
	filePattern = `([\w./-]*\w\.py)`
	namePattern = "`?([A-Za-z_][\\w.]*)`?"
	placeWords  = `(?:at|in|inside|on|within) `
)

var (
	stopVerb   = lazily(`(?i)\b(?:stopped|paused|halted)(?: again| now| here| there)? ` + placeWords)
	fileAt     = lazily("^`?" + filePattern + `:(\d+)`)
	lineAt     = lazily(`^line (\d+)(?: (?:of|in) ` + "`?" + filePattern + ")?")
	functionIn = lazily("^[`,]* ?(?:of |in |inside |within )?(?:the )?(function |method )?(`?)([A-Za-z_][\\w.]*)")
	wasHit     = lazily(`(?i)\bbreakpoint(?: at (?:` + filePattern + `:|line )(\d+))? (?:was|is|has been|got) hit(?: for the (\w+) time)?(,? (?:in|inside) )?`)
	firstHit   = lazily(`(?i)\b(\w+) hit of the breakpoint is (?:in|inside) (.*)`)

	never     = lazily(`(?i)\bline (\d+)(?: of ` + filePattern + `)? (?:has never (?:been )?(?:run|executed|reached)|never (?:runs?|ran|executes|executed)|(?:was|is) (?:never|not) (?:run|executed|reached)|has not (?:been )?(?:run|executed)|did not (?:run|execute)|does not (?:run|execute))\b`)
	ran       = lazily(`(?i)\bline (\d+)(?: of ` + filePattern + `)? (?:has run|ran|(?:was|is) (?:run|executed|reached)|has been (?:run|executed|reached))\b`)
	lineSays  = lazily(`(?i)\bline (\d+)(?: of ` + "`?" + filePattern + "`?)? (?:is|reads|says|contains):? `([^`]+)`")
	definedAt = lazily(namePattern + ` (?:is defined|is declared|starts|begins)(?: in ` + "`?" + filePattern + "`?)?(?: at| on)? line (\\d+)(?: (?:of|in) `?" + filePattern + ")?")
	callsVerb = lazily("(?:(?i:(the (?:failing )?test))|" + namePattern + "(?: method| function)?) (?:also |then |only |directly )*calls " + "(`?)([A-Za-z_][\\w.]*)(\\()?")
)

// stops reads claims about the place where the program is stopped.
func (x *extractor) stops() {
	s := x.sentence
	for _, m := range stopVerb().FindAllStringIndex(s, -1) {
		if strings.HasSuffix(s[:m[0]], "I ") || !x.isCertain(m[0], m[1]) {
			continue
		}
		c, rest := schemas.Claim{Kind: schemas.ClaimStops}, s[m[1]:]
		if at := fileAt().FindStringSubmatch(rest); at != nil {
			c.File, rest = at[1], rest[len(at[0]):]
			c.Line, _ = strconv.Atoi(at[2])
		} else if at := lineAt().FindStringSubmatch(rest); at != nil {
			c.File, rest = at[2], rest[len(at[0]):]
			c.Line, _ = strconv.Atoi(at[1])
		}
		c.Function = x.functionAt(rest)
		if c.Line > 0 || c.Function != "" {
			x.add(c)
		}
	}
	if m := wasHit().FindStringSubmatchIndex(s); m != nil && x.isCertain(m[0], m[1]) {
		c := schemas.Claim{Kind: schemas.ClaimStops}
		if m[2] >= 0 {
			c.File = s[m[2]:m[3]]
		}
		if m[4] >= 0 {
			c.Line, _ = strconv.Atoi(s[m[4]:m[5]])
		}
		if m[6] >= 0 {
			x.add(schemas.Claim{Kind: c.Kind, File: c.File, Line: c.Line, Hit: count(strings.ToLower(s[m[6]:m[7]]))})
		}
		if m[8] >= 0 {
			c.Function = x.functionAt(s[m[1]:])
		}
		if c.Function != "" || c.Line > 0 && m[6] < 0 {
			x.add(c)
		}
	}
	if m := firstHit().FindStringSubmatch(s); m != nil {
		if f := x.functionAt(m[2]); f != "" {
			x.add(schemas.Claim{Kind: schemas.ClaimStops, Function: f})
		}
	}
}

// functionAt returns the function that a text names at its start, or "". A word is a function if it is marked as
// code, follows "function" or "method", contains an underscore, or if a step has shown its definition.
func (x *extractor) functionAt(text string) string {
	m := functionIn().FindStringSubmatch(text)
	if m == nil || isPythonFile(m[3]) {
		return ""
	}
	if m[1] != "" || m[2] != "" || strings.Contains(m[3], "_") || x.isFunction(m[3]) {
		return strings.TrimRight(m[3], ".")
	}
	return ""
}

func (x *extractor) isFunction(name string) bool {
	name = bareName(strings.TrimRight(name, "."))
	return slices.ContainsFunc(x.record.Stops, func(s Stop) bool { return s.Function == name }) || len(x.record.definitions("", name)) > 0
}

// lines reads claims about lines: what they contain, whether they ran, and what they define.
func (x *extractor) lines() {
	s := x.sentence
	for _, p := range []struct {
		pattern *regexp.Regexp
		kind    string
	}{{never(), schemas.ClaimNotExecuted}, {ran(), schemas.ClaimExecuted}} {
		if m := p.pattern.FindStringSubmatchIndex(s); m != nil && x.isCertain(m[0], m[1]) {
			c := schemas.Claim{Kind: p.kind, File: x.file(m, 4)}
			c.Line, _ = strconv.Atoi(s[m[2]:m[3]])
			x.add(c)
		}
	}
	for _, m := range lineSays().FindAllStringSubmatchIndex(s, -1) {
		c := schemas.Claim{Kind: schemas.ClaimSource, File: x.file(m, 4), Text: s[m[6]:m[7]]}
		c.Line, _ = strconv.Atoi(s[m[2]:m[3]])
		if x.isCertain(m[0], m[1]) {
			x.add(c)
		}
	}
	if m := definedAt().FindStringSubmatchIndex(s); m != nil && x.isCertain(m[0], m[1]) {
		c := schemas.Claim{Kind: schemas.ClaimDefines, Function: s[m[2]:m[3]], File: x.file(m, 4)}
		if c.File == "" {
			c.File = x.file(m, 8)
		}
		c.Line, _ = strconv.Atoi(s[m[6]:m[7]])
		if s[m[0]] == '`' || x.isFunction(c.Function) {
			x.add(c)
		}
	}
}

// file returns the file that a match names, or "".
func (x *extractor) file(m []int, group int) string {
	if m[group] < 0 {
		return ""
	}
	return x.sentence[m[group]:m[group+1]]
}

// calls reads claims such as "f calls g" and "the test calls g".
func (x *extractor) calls() {
	s := x.sentence
	for _, m := range callsVerb().FindAllStringSubmatchIndex(s, -1) {
		callee := strings.TrimRight(s[m[8]:m[9]], ".")
		if m[6] == m[7] && m[10] < 0 && !x.isFunction(callee) || !x.isCertain(m[0], m[1]) {
			continue
		}
		c := schemas.Claim{Kind: schemas.ClaimCalls, Function: callee}
		switch {
		case m[2] >= 0:
			c.Caller = x.record.testID()
		case x.isFunction(s[m[4]:m[5]]):
			c.Caller = s[m[4]:m[5]]
		}
		if c.Caller != "" {
			x.add(c)
		}
	}
}

var commandTest = lazily(`\S+::\S+`)

// testID returns the test that the debugger runs, or the only failing test, or "".
func (r *Record) testID() string {
	if id := commandTest().FindString(r.session.command); id != "" {
		return strings.Trim(id, `'"`)
	}
	if run, _ := r.lastRun(); run != nil && len(run.Results) == 1 {
		return run.Results[0].ID
	}
	return ""
}
