package write

import (
	"slices"
	"strings"
)

// This file adds what a statement may lack: a conversion, a method call, an argument or a condition.

var (
	conversions = []string{"str", "int", "float", "list", "tuple", "abs", "bool"}
	methods     = []string{".lower()", ".upper()", ".strip()"}
)

// convert converts an operand that begins at a token, or a part of it, or calls a method of it.
func (b *variantBuilder) convert(i int) {
	tokens := b.s.tokens
	t := tokens[i]
	isOperand := t.kind == nameToken || t.kind == stringToken || t.is("(", "[") && b.isUnary(i)
	if !b.s.isInside(i) || !isOperand || b.at(i-1).is(".") || b.at(i+1).is("=") {
		return
	}
	for _, end := range b.parts(i) {
		if !b.at(end + 1).is("=") {
			for _, name := range conversions {
				b.change(t.at, tokens[end].end, name+"("+b.s.source(i, end)+")")
			}
		}
		for _, method := range methods {
			b.change(tokens[end].end, tokens[end].end, method)
		}
	}
}

// convertAll converts the value of the statement.
func (b *variantBuilder) convertAll() {
	if b.s.last < b.s.first || b.s.kind == loopStatement {
		return
	}
	for _, name := range conversions {
		b.replace(b.s.first, b.s.last, name+"("+b.s.expression()+")")
	}
}

// parts returns the last tokens of an operand that begins at a token and of its parts: a.b(c)[d] has the parts a,
// a.b(c) and itself. It leaves out the name of a called function.
func (b *variantBuilder) parts(i int) []int {
	tokens, j := b.s.tokens, i
	if tokens[i].is("(", "[") {
		j = closing(tokens, i)
	}
	var out []int
	for j >= 0 {
		next := b.at(j + 1)
		if !next.is("(") {
			out = append(out, j)
		}
		switch {
		case next.is("(", "["):
			j = closing(tokens, j+1)
		case next.is(".") && b.at(j+2).kind == nameToken:
			j += 2
		default:
			return out
		}
	}
	return nil
}

// generator turns a generator expression into a list or a tuple.
func (b *variantBuilder) generator(i int) {
	tokens := b.s.tokens
	if !tokens[i].is("(") || !b.isUnary(i) {
		return
	}
	end := closing(tokens, i)
	for j := i + 1; j < end; j++ {
		if tokens[j].is("(", "[", "{") {
			j = closing(tokens, j)
		} else if tokens[j].is("for") {
			inner := b.s.source(i+1, end-1)
			b.change(tokens[i].at, tokens[end].end, "["+inner+"]")
			b.change(tokens[i].at, tokens[i].at, "tuple")
			return
		}
	}
}

// keyword passes a variable as the last argument of a call, under its own name or one that follows from the other
// arguments: if min=min_size is passed, max_size may be passed as max.
func (b *variantBuilder) keyword(i int, names []string) {
	tokens := b.s.tokens
	if !tokens[i].is("(") || b.isUnary(i) || b.at(i-1).kind != nameToken {
		return
	}
	end := closing(tokens, i)
	for _, name := range names {
		if slices.ContainsFunc(tokens[i:max(i, end)], func(t token) bool { return t.is(name) }) {
			continue
		}
		argument := name + "=" + name
		if name == "kwargs" {
			argument = "**kwargs"
		}
		b.addArgument(i, end, argument)
		for j := i + 1; j+2 <= end; j++ {
			suffix, ok := strings.CutPrefix(tokens[j+2].text, tokens[j].text)
			if key, isLike := strings.CutSuffix(name, suffix); ok && suffix != "" && isLike && key != "" && tokens[j].kind == nameToken && tokens[j+1].is("=") {
				b.addArgument(i, end, key+"="+name)
			}
		}
	}
}

// addArgument adds a last argument to the call with brackets at two indexes.
func (b *variantBuilder) addArgument(open, end int, argument string) {
	if end > open+1 {
		argument = ", " + argument
	}
	b.change(b.s.tokens[end].at, b.s.tokens[end].at, argument)
}

// fallback keeps values such as 0 and "": the default value replaces only None or a missing value.
func (b *variantBuilder) fallback(i int) {
	s := b.s
	if !s.tokens[i].is("or") || !s.isInside(i) || s.depth(i) != s.depth(s.first) || s.top(s.first, "and") <= s.last {
		return
	}
	value, instead := s.source(s.first, i-1), s.source(i+1, s.last)
	b.replace(s.first, s.last, value+" if "+value+" is not None else "+instead)
	if open := opening(s.tokens, i-1); open > 1 && s.tokens[open-1].is("get") && s.tokens[open-2].is(".") {
		b.replace(s.first, s.last, s.source(s.first, i-2)+", "+instead+")")
	}
}

// guard adds a condition on a variable to a condition.
func (b *variantBuilder) guard(names []string) {
	s := b.s
	if s.kind != conditionStatement && s.kind != returnStatement || s.last < s.first {
		return
	}
	condition := s.expression()
	and, or := condition, condition
	if s.top(s.first, "or") <= s.last {
		and = "(" + condition + ")"
	}
	for _, name := range names {
		b.replace(s.first, s.last, "not "+name+" or "+or)
		b.replace(s.first, s.last, name+" or "+or)
		b.replace(s.first, s.last, name+" and "+and)
		b.replace(s.first, s.last, and+" and "+name)
		b.replace(s.first, s.last, or+" or "+name)
		b.replace(s.first, s.last, and+" and not "+name)
	}
}
