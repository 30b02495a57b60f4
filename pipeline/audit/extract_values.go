package audit

import (
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

var starting = lazily(`\b(start|begin|end)s at (\d+)\b`)

// values reads claims such as "x is 5", "x = 5" and "f(2) returned None".
func (x *extractor) values() {
	s := x.sentence
	if !strings.ContainsAny(s, "0123456789'\"`[{") && !strings.Contains(s, "True") && !strings.Contains(s, "False") && !strings.Contains(s, "None") {
		return
	}
	for at := 0; at < len(s); at++ {
		if s[at] != ' ' && s[at] != '=' {
			continue
		}
		verb, end, ok := verbAt(s, at)
		if !ok || x.inCode(at) {
			continue
		}
		value, length := valueAt(s[end:])
		if length == 0 || !follows(s[end+length:]) {
			continue
		}
		expression, start := expressionBefore(s[:at])
		if expression == "" || start > 0 && isOpenBefore(s[:start]) || !x.isCertain(start, end+length) {
			continue
		}
		x.value(expression, value, verb, s[start] == '`')
		if verb == "are both" {
			if before, ok := strings.CutSuffix(s[:start], " and "); ok {
				other, at := expressionBefore(before)
				if other != "" {
					x.value(other, value, verb, s[at] == '`')
				}
			}
		}
	}
	if !strings.Contains(s, "s at ") {
		return
	}
	if m := starting().FindStringSubmatch(s); m != nil {
		if v := x.onlyPrinted(strings.NewReplacer("begin", "start").Replace(m[1])); v != nil {
			x.add(schemas.Claim{Kind: schemas.ClaimValue, Expression: v.Expression, Value: m[2]})
		}
	}
}

// follows reports whether a value can end before text. It accepts only certain words, because others may belong to
// the value, as in "is 3 seconds".
func follows(text string) bool {
	if text == "" || strings.IndexByte(",.;:!)`", text[0]) >= 0 {
		return true
	}
	rest, isSpaced := strings.CutPrefix(text, " ")
	switch firstWord(rest) {
	case "":
		return strings.HasPrefix(rest, "—") || strings.HasPrefix(rest, "–") || strings.HasPrefix(rest, "(") || strings.HasPrefix(rest, "-")
	case "i":
		return isSpaced && strings.HasPrefix(rest, "i.e") && (len(rest) == 3 || !isWordByte(rest[3]))
	case "and", "but", "while", "when", "here", "instead", "which", "as", "so", "because", "at", "in", "now", "after", "before", "even", "although", "rather",
		"there", "too", "again", "where", "then", "since", "though", "yet", "inside", "for", "on":
		return isSpaced
	}
	return false
}

var verbs = []string{
	"is", "was", "are both", "equals", "remains", "stays", "evaluates to", "evaluated to", "has the value", "has value", "comes out as", "comes out to",
	"comes out at", "came out as", "came out to", "came out at", "returns", "returned", "gives", "gave", "has changed to", "changed to", "holds", "prints", "printed",
}

// verbAt reads the verb or equals sign at s[at:] that links an expression to its value. It returns the verb, or "" for
// an equals sign, and the index at which the value starts. ok is false if there is neither.
func verbAt(s string, at int) (verb string, end int, ok bool) {
	rest, isSpaced := strings.CutPrefix(s[at:], " ")
	if after, isEqual := strings.CutPrefix(rest, "="); isEqual {
		if !isSpaced && at > 0 && (s[at-1] == '=' || s[at-1] == ' ') {
			return "", 0, false
		}
		return "", len(s) - len(strings.TrimPrefix(strings.TrimPrefix(after, "="), " ")), true
	}
	if !isSpaced || rest == "" || strings.IndexByte("aceghiprsw", rest[0]) < 0 {
		return "", 0, false
	}
	for _, verb := range verbs {
		if after, ok := strings.CutPrefix(rest, verb); ok && strings.HasPrefix(after, " ") {
			after = skipWords(after[1:], "still", "now", "also", "only", "exactly", "currently", "indeed", "actually", "again", "just", "already", "set to", "equal to")
			return verb, len(s) - len(after), true
		}
	}
	return "", 0, false
}

// onlyPrinted returns the only value printed at the current stop whose expression ends with a call or an attribute
// of this name.
func (x *extractor) onlyPrinted(name string) *Value {
	var found *Value
	for i := range x.record.Values {
		v := &x.record.Values[i]
		if v.Stop != x.record.session.stop || bareName(strings.TrimSuffix(v.Expression, "()")) != name {
			continue
		}
		if found != nil && found.Expression != v.Expression {
			return nil
		}
		found = v
	}
	return found
}

// value adds a claim about an expression if the debugger has printed it, or if it is clearly code and no file name.
func (x *extractor) value(expression, value, verb string, quoted bool) {
	known := x.record.latest(expression) != nil
	if !known {
		for _, part := range parts(expression) {
			known = known || x.record.latest(part) != nil
		}
	}
	isCode := strings.ContainsAny(expression, "._[(") || quoted && !strings.Contains(expression, " ")
	switch {
	case !known && (!isCode || expression[0] == '(' || isPythonFile(expression)):
	case strings.HasPrefix(verb, "return"):
		x.add(schemas.Claim{Kind: schemas.ClaimReturns, Function: expression, Value: value})
	default:
		x.add(schemas.Claim{Kind: schemas.ClaimValue, Expression: expression, Value: value})
	}
}

// valueAt returns the Python value at the start of a text: a number, a string, a constant, a list, tuple, set or
// dict, a call of a type, or code in backquotes.
func valueAt(text string) (value string, length int) {
	if text == "" {
		return "", 0
	}
	switch c := text[0]; {
	case c == '`':
		if end := strings.IndexByte(text[1:], '`'); end > 0 {
			inner := text[1 : end+1]
			if v, n := valueAt(inner); n == len(inner) {
				return v, end + 2
			}
		}
		return "", 0
	case c == '\'' || c == '"':
		if end := strings.IndexByte(text[1:], c); end >= 0 {
			return text[:end+2], end + 2
		}
		return "", 0
	case c == '-' || '0' <= c && c <= '9':
		n := 1
		for n < len(text) && ('0' <= text[n] && text[n] <= '9' || text[n] == '_' || text[n] == '.' && n+1 < len(text) && text[n+1] != ' ') {
			n++
		}
		if c == '-' && n == 1 || n < len(text) && isWordByte(text[n]) {
			return "", 0
		}
		return text[:n], n
	case c == '(' || c == '[' || c == '{':
		n := closing(text)
		return text[:n], n
	}
	n := 0
	for n < len(text) && (isWordByte(text[n]) || text[n] == '.' && n+1 < len(text) && isWordByte(text[n+1])) {
		n++
	}
	if isConstant(text[:n]) {
		return text[:n], n
	}
	if n > 0 && n < len(text) && text[n] == '(' && 'A' <= text[0] && text[0] <= 'Z' {
		if end := closing(text[n:]); end > 0 {
			return text[:n+end], n + end
		}
	}
	return "", 0
}

// closing returns the length of the bracketed text at the start, or 0.
func closing(text string) int {
	for i, depth := range metrics.Unquoted(text, false) {
		if depth == 0 {
			return i + 1
		}
	}
	return 0
}

// expressionBefore returns the expression at the end of a text, and its start.
func expressionBefore(text string) (expression string, start int) {
	text = strings.TrimRight(text, " ")
	if strings.HasSuffix(text, "`") {
		if open := strings.LastIndexByte(text[:len(text)-1], '`'); open >= 0 {
			return text[open+1 : len(text)-1], open
		}
		return "", 0
	}
	at := len(text)
	for at > 0 {
		c := text[at-1]
		switch {
		case c == ')' || c == ']':
			open := opening(text[:at])
			if open < 0 {
				return "", 0
			}
			at = open
		case isWordByte(c), c == '.':
			at--
		default:
			return text[at:], at
		}
	}
	return text[at:], at
}

// opening returns the start of the bracketed text at the end, or -1.
func opening(text string) int {
	depth, quote := 0, byte(0)
	for i := len(text) - 1; i >= 0; i-- {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case strings.IndexByte(")]}", c) >= 0:
			depth++
		case strings.IndexByte("([{", c) >= 0:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// isOpenBefore reports whether a bracket is open at the end of a text, as inside a call.
func isOpenBefore(text string) bool {
	return strings.LastIndexAny(text, "([{") > strings.LastIndexAny(text, ")]}")
}

var itIs = lazily(`^It is (?:(?:still|now|only|already) )*`)

// answers reads the start of a message that states what the previous call printed, such as "5 and True: ..." or
// "It is still 5". The call must have printed as many values as the text names.
func (x *extractor) answers() {
	r, s := x.record, x.sentence
	if len(r.Values) == 0 {
		return
	}
	first := len(r.Values)
	for first > 0 && r.Values[first-1].Step == r.Values[len(r.Values)-1].Step {
		first--
	}
	printed := r.Values[first:]
	if len(r.texts) == 0 || printed[0].Step != r.lastStep || printed[0].IsDump {
		return
	}
	rest, hasItIs := s, false
	if m := itIs().FindString(s); m != "" {
		rest, hasItIs = s[len(m):], true
	}
	var values []string
	for {
		value, n := valueAt(rest)
		if n == 0 {
			return
		}
		values, rest = append(values, value), rest[n:]
		if after, ok := strings.CutPrefix(rest, " and "); ok {
			rest = after
		} else if after, ok := strings.CutPrefix(rest, ", "); ok && len(values) < len(printed) && !hasItIs {
			rest = after
		} else {
			break
		}
	}
	if len(values) != len(printed) || !(strings.HasPrefix(rest, ":") || hasItIs && follows(rest)) {
		return
	}
	for i, v := range printed {
		x.add(schemas.Claim{Kind: schemas.ClaimValue, Expression: v.Expression, Value: values[i]})
	}
}
