package write

import "strings"

// This file changes bounds, operands and arguments.

// bound changes the bounds of a slice, and drops "+ 1" and "- 1".
func (b *variantBuilder) bound(i int) {
	tokens := b.s.tokens
	t := tokens[i]
	if t.is("+", "-") && !b.isUnary(i) && b.at(i+1).is("1") && b.at(i+1).kind == numberToken && !b.at(i+2).is("*", "/", "//", "%", "**") {
		b.change(tokens[i-1].end, tokens[i+1].end, "")
	}
	if !t.is("[") || b.isUnary(i) {
		return
	}
	end := closing(tokens, i)
	colon := -1
	for j := i + 1; j < end; j++ {
		if tokens[j].is("(", "[", "{") {
			j = closing(tokens, j)
		} else if tokens[j].is(":") && colon < 0 {
			colon = j
		}
	}
	switch {
	case end < 0:
	case colon < 0: // an index
		if last := tokens[end-1]; end > i+1 && (last.kind == nameToken || last.is(")", "]")) {
			b.change(last.end, last.end, " - 1")
			b.change(last.end, last.end, " + 1")
		}
	default:
		b.slice(i, colon, end)
	}
}

// slice changes the bounds of a slice, whose brackets and first colon are at the given indexes.
func (b *variantBuilder) slice(open, colon, end int) {
	tokens := b.s.tokens
	second := end
	for j := colon + 1; j < end; j++ {
		if tokens[j].is(":") {
			second = j
		}
	}
	if colon > open+1 {
		b.change(tokens[open].end, tokens[colon].at, "")
		b.change(tokens[colon-1].end, tokens[colon-1].end, " + 1")
		b.change(tokens[colon-1].end, tokens[colon-1].end, " - 1")
	} else {
		b.change(tokens[open].end, tokens[open].end, "1")
	}
	if second > colon+1 {
		b.change(tokens[colon].end, tokens[second].at, "")
		b.change(tokens[second-1].end, tokens[second-1].end, " + 1")
		b.change(tokens[second-1].end, tokens[second-1].end, " - 1")
	} else {
		b.change(tokens[colon].end, tokens[colon].end, "-1")
	}
}

// operands exchanges the operands of an operator.
func (b *variantBuilder) operands(i int) {
	if !b.s.tokens[i].is("-", "/", "//", "%", "+", "<", ">", "<=", ">=", "**") || b.isUnary(i) {
		return
	}
	left, right := b.operandBefore(i), b.operandAfter(i)
	if left < 0 || right < 0 {
		return
	}
	tokens := b.s.tokens
	b.change(tokens[left].at, tokens[right].end, b.s.source(i+1, right)+" "+tokens[i].text+" "+b.s.source(left, i-1))
}

// operandBefore returns the first token of the operand that ends before a token, or -1.
func (b *variantBuilder) operandBefore(i int) int {
	tokens, j := b.s.tokens, i-1
	for j >= 0 {
		t := tokens[j]
		if t.is(")", "]", "}") {
			if j = opening(tokens, j); j < 0 {
				return -1
			}
		} else if t.kind == operatorToken || t.kind == keywordToken && !t.is("None", "True", "False") {
			return -1
		}
		previous := b.at(j - 1)
		switch {
		case previous.is("."):
			j -= 2
		case tokens[j].is("(", "[") && (previous.kind == nameToken || previous.kind == stringToken || previous.is(")", "]")):
			j--
		default:
			return j
		}
	}
	return -1
}

// operandAfter returns the last token of the operand that begins after a token, or -1.
func (b *variantBuilder) operandAfter(i int) int {
	tokens, j := b.s.tokens, i+1
	if b.at(j).is("-") {
		j++
	}
	t := b.at(j)
	switch {
	case t.is("(", "[", "{"):
		j = closing(tokens, j)
	case t.kind == operatorToken || t.kind == 0 || t.kind == keywordToken && !t.is("None", "True", "False"):
		return -1
	}
	for j >= 0 {
		switch next := b.at(j + 1); {
		case next.is("(", "["):
			j = closing(tokens, j+1)
		case next.is(".") && b.at(j+2).kind == nameToken:
			j += 2
		default:
			return j
		}
	}
	return -1
}

// arguments exchanges neighboring arguments of a call, or elements of a tuple or list, and drops an argument.
func (b *variantBuilder) arguments(i int) {
	tokens := b.s.tokens
	if !tokens[i].is("(", "[", "{") || b.at(i-1).is("in") && !b.isComprehension(i-1) { // the order does not matter
		return
	}
	end := closing(tokens, i)
	var starts, ends []int
	first := i + 1
	for j := i + 1; j <= end; j++ {
		switch {
		case tokens[j].is("(", "[", "{"):
			j = closing(tokens, j)
		case tokens[j].is("for"):
			return
		case tokens[j].is(",") || j == end:
			if j > first {
				starts, ends = append(starts, first), append(ends, j-1)
			}
			first = j + 1
		}
	}
	if isCall := tokens[i].is("(") && !b.isUnary(i); isCall && len(starts) > 1 {
		for k := range starts {
			if k+1 < len(starts) {
				b.change(tokens[starts[k]].at, tokens[starts[k+1]].at, "")
			} else {
				b.change(tokens[ends[k-1]].end, tokens[ends[k]].end, "")
			}
		}
	}
	for k := 0; k+1 < len(starts); k++ {
		one, other := b.s.source(starts[k], ends[k]), b.s.source(starts[k+1], ends[k+1])
		if strings.Contains(one+other, "=") || strings.HasPrefix(one, "*") || strings.HasPrefix(other, "*") {
			continue
		}
		between := b.s.text[tokens[ends[k]].end:tokens[starts[k+1]].at]
		b.change(tokens[starts[k]].at, tokens[ends[k+1]].end, other+between+one)
	}
}
