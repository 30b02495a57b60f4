package write

import (
	"slices"
	"strconv"
	"strings"
)

// variant is a statement with one small change, the kind of change that repairs typical mistakes.
type variant struct {
	statement string // the changed statement
	// expression is the changed expression, as the debugger can evaluate it, and original is the one before the change.
	expression, original string
	old, new             string // what the change replaces, and with what
}

// swaps holds operators, constants and names of functions that are easily mistaken for each other.
var swaps = map[string][]string{
	"<": {"<=", ">", ">="}, "<=": {"<", ">", ">="}, ">": {">=", "<", "<="}, ">=": {">", "<", "<="},
	"==": {"!="}, "!=": {"=="}, "and": {"or"}, "or": {"and"}, "True": {"False"}, "False": {"True"},
	"+": {"-", "*"}, "-": {"+"}, "*": {"/", "//", "+", "**"}, "/": {"*", "//"}, "//": {"/", "*", "%"}, "%": {"//", "*"}, "**": {"*"},
	"&": {"|", "^"}, "|": {"&", "^"}, "^": {"&", "|"}, "<<": {">>"}, ">>": {"<<"},
	"+=": {"-=", "="}, "-=": {"+="}, "*=": {"/=", "//="}, "/=": {"*="}, "//=": {"*=", "/="}, "|=": {"&="}, "&=": {"|="}, "<<=": {">>="}, ">>=": {"<<="},
	"min": {"max"}, "max": {"min"}, "any": {"all"}, "all": {"any"}, "append": {"extend"}, "extend": {"append"}, "find": {"rfind"}, "rfind": {"find"},
	"index": {"rindex"}, "rindex": {"index"}, "startswith": {"endswith"}, "endswith": {"startswith"}, "lower": {"upper"}, "upper": {"lower"},
	"lstrip": {"rstrip", "strip"}, "rstrip": {"lstrip", "strip"}, "strip": {"lstrip", "rstrip"}, "split": {"rsplit"}, "rsplit": {"split"},
	"partition": {"rpartition"}, "rpartition": {"partition"}, "keys": {"values", "items"}, "values": {"keys", "items"}, "items": {"keys", "values"},
	"list": {"sorted"}, "sorted": {"list"}, "floor": {"ceil"}, "ceil": {"floor"}, "match": {"search", "fullmatch"}, "search": {"match"}, "fullmatch": {"match"},
	"add": {"discard", "remove"}, "discard": {"add"}, "break": {"continue"}, "continue": {"break"}, "popleft": {"pop"}, "appendleft": {"append"},
}

// vocabulary has what a change can use in place of a part of a statement.
type vocabulary struct {
	names      []string // of variables
	attributes []string // of self
	strings    []string // literals
	constants  []string // names in the test, such as EMPTY
}

// variants returns the statement with one small change each.
func (s *statement) variants(words vocabulary) []variant {
	b := variantBuilder{s: s}
	for i := range s.tokens {
		b.swap(i)
		b.negate(i)
		b.number(i)
		b.bound(i)
		b.operands(i)
		b.arguments(i)
		b.rename(i, words.names)
		b.attribute(i, words.attributes)
		b.literal(i, words.strings)
		b.convert(i)
		b.generator(i)
		b.keyword(i, words.names)
		b.fallback(i)
	}
	b.guard(words.names)
	b.constants(words.constants)
	b.byOne()
	b.convertAll()
	b.accumulate()
	b.branches()
	b.copies()
	return b.out
}

type variantBuilder struct {
	s   *statement
	out []variant
}

// replace adds the variant in which a text replaces the tokens from one to another.
func (b *variantBuilder) replace(first, last int, text string) {
	b.change(b.s.tokens[first].at, b.s.tokens[last].end, text)
}

// change adds the variant in which a text replaces the bytes of the statement from one to another.
func (b *variantBuilder) change(from, to int, text string) {
	s := b.s
	v := variant{statement: s.text[:from] + text + s.text[to:], old: s.text[from:to], new: text}
	if v.statement == s.text || slices.ContainsFunc(b.out, func(o variant) bool { return o.statement == v.statement }) {
		return
	}
	changed, ok := parseStatement(v.statement)
	if !ok {
		return
	}
	v.expression, v.original = changed.evaluated(), s.evaluated()
	if v.expression == v.original { // the change is not in the expression
		v.expression, v.original = "", ""
	}
	b.out = append(b.out, v)
}

// evaluated returns the expression that computes the value of the statement, or "".
func (s *statement) evaluated() string {
	switch s.kind {
	case otherStatement:
		return s.arguments()
	case updateStatement:
		op := strings.TrimSuffix(s.tokens[s.first-1].text, "=")
		if slices.ContainsFunc(s.tokens[s.first:s.last+1], func(t token) bool { return t.kind == operatorToken && !t.is(".") || t.kind == keywordToken }) {
			return s.target + " " + op + " (" + s.expression() + ")"
		}
		return s.target + " " + op + " " + s.expression()
	}
	return s.expression()
}

// arguments returns what a call that is a statement of its own passes, or what a yield statement yields.
func (s *statement) arguments() string {
	last := len(s.tokens) - 1
	if s.tokens[0].is("yield") && last > 0 && !s.tokens[1].is("from") {
		return s.source(1, last)
	}
	open := opening(s.tokens, last)
	isName := func(t token) bool { return t.kind == nameToken || t.is(".") }
	if open < 1 || !s.tokens[open].is("(") || slices.ContainsFunc(s.tokens[:open], func(t token) bool { return !isName(t) }) {
		return ""
	}
	var out []string
	for _, part := range splitTuple(s.source(open+1, last-1)) {
		tokens, _ := tokenize(part)
		switch {
		case len(tokens) > 2 && tokens[1].is("="): // passed by its name
			part = part[tokens[2].at:]
		case len(tokens) == 0 || tokens[0].is("**"):
			return ""
		}
		out = append(out, part)
	}
	return strings.Join(out, ", ")
}

// swap replaces an operator, a constant or the name of a function by a similar one.
func (b *variantBuilder) swap(i int) {
	t := b.s.tokens[i]
	isUnary := t.is("+", "-", "*", "**") && b.isUnary(i)
	if t.kind == stringToken || isUnary {
		return
	}
	for _, other := range swaps[t.text] {
		b.replace(i, i, other)
	}
	switch next := b.at(i + 1); {
	case t.is("not") && next.is("in"):
		b.replace(i, i+1, "in")
	case t.is("is") && next.is("not"):
		b.replace(i, i+1, "is")
	case t.is("is"):
		b.replace(i, i, "is not")
	case t.is("in") && !b.at(i-1).is("not") && b.s.kind != loopStatement && !b.isComprehension(i):
		b.replace(i, i, "not in")
	}
}

func (b *variantBuilder) at(i int) token {
	if i < 0 || i >= len(b.s.tokens) {
		return token{}
	}
	return b.s.tokens[i]
}

// isComprehension reports whether the token "in" at an index belongs to "for x in".
func (b *variantBuilder) isComprehension(i int) bool {
	depth := 0
	for j := i - 1; j >= 0; j-- {
		switch t := b.s.tokens[j]; {
		case t.is(")", "]", "}"):
			depth++
		case t.is("(", "[", "{"):
			if depth--; depth < 0 {
				return false
			}
		case depth == 0 && t.is("for"):
			return true
		case depth == 0 && t.is("if", "and", "or", "not"):
			return false
		}
	}
	return false
}

// isUnary reports whether the operator at an index has no left operand.
func (b *variantBuilder) isUnary(i int) bool {
	if i == 0 {
		return true
	}
	p := b.s.tokens[i-1]
	return p.kind == keywordToken && !p.is("None", "True", "False") || p.kind == operatorToken && !p.is(")", "]", "}")
}

// startsCondition reports whether a condition, or an operand of one, begins at a token.
func (b *variantBuilder) startsCondition(i int) bool {
	return b.s.isInside(i) && (i == b.s.first && b.s.kind == conditionStatement || i == b.s.first && b.s.kind == returnStatement ||
		b.at(i-1).is("and", "or", "if") || b.at(i-1).is("(") && b.isBoolean(i-1))
}

// isBoolean reports whether a bracket contains "and" or "or".
func (b *variantBuilder) isBoolean(open int) bool {
	end := closing(b.s.tokens, open)
	for j := open + 1; j < end; j++ {
		if b.s.tokens[j].is("and", "or") {
			return true
		}
	}
	return false
}

// negate removes "not" or "-", or puts "not" in front of a condition.
func (b *variantBuilder) negate(i int) {
	t, tokens := b.s.tokens[i], b.s.tokens
	switch {
	case t.is("not") && i+1 < len(tokens) && !b.at(i+1).is("in") && !b.at(i-1).is("is"):
		b.change(t.at, b.at(i+1).at, "")
		if open := i + 1; b.at(open).is("(") {
			if end := closing(tokens, open); end > 0 && !b.s.isInside(end+1) {
				b.change(t.at, tokens[end].end, b.s.source(open+1, end-1))
			}
		}
	case b.startsCondition(i):
		b.change(t.at, t.at, "not ")
	case t.is("-") && b.isUnary(i):
		b.change(t.at, t.end, "")
	}
}

// constants makes the statement return or set a constant of the test.
func (b *variantBuilder) constants(names []string) {
	s := b.s
	if s.last < s.first || s.kind != returnStatement && s.kind != assignStatement {
		return
	}
	for _, name := range names {
		b.replace(s.first, s.last, name)
	}
}

// byOne makes a returned or assigned value smaller or greater by one.
func (b *variantBuilder) byOne() {
	s := b.s
	if s.last < s.first || s.kind != returnStatement && s.kind != assignStatement || s.top(s.first, ",") <= s.last || s.top(s.first, "if") <= s.last {
		return
	}
	b.change(s.tokens[s.last].end, s.tokens[s.last].end, " - 1")
	b.change(s.tokens[s.last].end, s.tokens[s.last].end, " + 1")
}

// number changes an integer by one.
func (b *variantBuilder) number(i int) {
	t := b.s.tokens[i]
	if t.kind != numberToken {
		return
	}
	n, err := strconv.Atoi(t.text)
	if err != nil || strconv.Itoa(n) != t.text {
		return
	}
	from := t.at
	if b.at(i-1).is("-") && b.isUnary(i-1) {
		n, from = -n, b.at(i-1).at
	}
	b.change(from, t.end, strconv.Itoa(n+1))
	b.change(from, t.end, strconv.Itoa(n-1))
}

// rename replaces a name by another one.
func (b *variantBuilder) rename(i int, names []string) {
	t := b.s.tokens[i]
	if t.kind != nameToken || !b.s.isInside(i) || b.at(i+1).is("(", "=") || b.at(i-1).is(".") || !slices.Contains(names, t.text) {
		return
	}
	for _, name := range names {
		if name != "self" && name != "cls" {
			b.replace(i, i, name)
		}
	}
}

// attribute replaces an attribute of self by another one.
func (b *variantBuilder) attribute(i int, attributes []string) {
	if t := b.s.tokens[i]; t.kind == nameToken && b.at(i-1).is(".") && b.at(i-2).is("self") && slices.Contains(attributes, t.text) {
		for _, name := range attributes {
			b.replace(i, i, name)
		}
	}
}

// literal replaces a string by another one.
func (b *variantBuilder) literal(i int, literals []string) {
	isKnown := func(text string) bool { return unquoted(text) == unquoted(b.s.tokens[i].text) }
	if b.s.tokens[i].kind == stringToken && slices.ContainsFunc(literals, isKnown) {
		quote := b.s.tokens[i].text[len(b.s.tokens[i].text)-1:]
		for _, text := range literals {
			if text[0] == '"' || text[0] == '\'' { // with the quotes of the statement
				text = quote + unquoted(text) + quote
			}
			b.replace(i, i, text)
		}
	}
}

// accumulate turns an assignment into an augmented one.
func (b *variantBuilder) accumulate() {
	s := b.s
	if i := s.first - 1; s.kind == assignStatement && s.top(0, "=") == i && !strings.Contains(s.target, ",") {
		for _, op := range []string{"+=", "-=", "*=", "|=", "&="} {
			b.replace(i, i, op)
		}
	}
}

// branches exchanges the values of a conditional expression.
func (b *variantBuilder) branches() {
	s := b.s
	test, other := s.top(s.first, "if"), s.top(s.first, "else")
	if s.last < s.first || test <= s.first || other <= test+1 || other >= s.last {
		return
	}
	one, condition, two := s.source(s.first, test-1), s.source(test+1, other-1), s.source(other+1, s.last)
	b.replace(s.first, s.last, two+" if "+condition+" else "+one)
}

// copies makes a copy of an assigned or returned name.
func (b *variantBuilder) copies() {
	s := b.s
	if s.kind != assignStatement && s.kind != returnStatement || s.first > s.last || s.tokens[s.first].kind != nameToken {
		return
	}
	for i := s.first; i <= s.last; i++ {
		if s.tokens[i].kind != nameToken && !s.tokens[i].is(".") {
			return
		}
	}
	expression := s.expression()
	b.replace(s.first, s.last, "list("+expression+")")
	b.replace(s.first, s.last, "dict("+expression+")")
	b.replace(s.first, s.last, expression+".copy()")
}
