package write

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Kinds of changes, as far as the agent can say what they repair.
const (
	boundChange    = "bound"    // whether a bound itself counts
	reverseChange  = "reverse"  // of a condition
	logicChange    = "logic"    // and, or
	operatorChange = "operator" // of arithmetic
	numberChange   = "number"
	nameChange     = "name" // or a string
	orderChange    = "order"
	removalChange  = "removal"
	argumentChange = "argument" // one more
	otherChange    = ""
)

// kindOf returns the kind of a change.
func (v variant) kindOf() string {
	from, _ := tokenize(v.old)
	to, _ := tokenize(v.new)
	isOne := len(from) == 1 && len(to) == 1
	negated := strings.ReplaceAll(strings.ReplaceAll(v.new, "not ", ""), "(", "")
	switch {
	case v.new == "":
		return removalChange
	case isOne && strings.TrimSuffix(v.old, "=") == strings.TrimSuffix(v.new, "=") && from[0].is("<", "<=", ">", ">="):
		return boundChange
	case isOne && from[0].is("and", "or"):
		return logicChange
	case isOne && from[0].is("<", "<=", ">", ">=", "==", "!="), v.old == "is" || v.new == "is", v.old == "in" || v.new == "in", v.new == "not "+v.old, v.old == "not", strings.TrimSpace(v.new) == "not", isOne && from[0].is("True", "False"):
		return reverseChange
	case v.old != v.new && v.old != "" && strings.TrimSuffix(negated, ")") == strings.TrimSuffix(strings.ReplaceAll(v.old, "(", ""), ")"):
		return reverseChange
	case isOne && from[0].kind == operatorToken && to[0].kind == operatorToken:
		return operatorChange
	case isOne && from[0].kind == numberToken && to[0].kind == numberToken:
		return numberChange
	case isOne && from[0].kind == to[0].kind && (from[0].kind == nameToken || from[0].kind == stringToken):
		return nameChange
	case len(from) > 2 && len(from) == len(to) && sameTokens(from, to):
		return orderChange
	case v.old == "" && strings.Contains(v.new, "="):
		return argumentChange
	}
	return otherChange
}

// isTypical reports whether a change repairs a typical mistake.
func (v variant) isTypical() bool {
	return v.old != "=" && v.new != "=" && slices.Contains([]string{boundChange, reverseChange, logicChange, operatorChange, numberChange, orderChange}, v.kindOf())
}

// fits reports whether a change is sensible for a value of the kind that its statement has: a reversal for a condition, another operator
// for numbers. No change is if the statement raises an error.
func (v variant) fits(st Placed, outcome Value) bool {
	if outcome.IsError {
		return false
	}
	isBool := st.kind == conditionStatement || outcome.Text == "True" || outcome.Text == "False"
	switch v.kindOf() {
	case reverseChange, logicChange:
		return isBool
	case operatorChange:
		isText := slices.ContainsFunc(st.tokens, func(t token) bool { return t.kind == stringToken })
		return !isText && (isBool || isNumber(outcome.Text))
	}
	return true
}

// sameTokens reports whether two texts have the same tokens in another order.
func sameTokens(a, b []token) bool {
	texts := func(tokens []token) []string {
		var out []string
		for _, t := range tokens {
			out = append(out, t.text)
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(texts(a), texts(b))
}

// suspect says what could be wrong with a statement if a change repairs it.
func (n *Notes) suspect(c change, stop Stop) message {
	switch c.kindOf() {
	case boundChange:
		counts := "Perhaps the limit itself should not count."
		if strings.HasSuffix(c.new, "=") {
			counts = "Perhaps the limit itself should count, too."
		}
		if a, b, ok := equalOperands(c, stop); ok {
			return say(fmt.Sprintf("`%s` and `%s` are equal here.", a, b)).then(say(counts))
		}
		return say(counts)
	case reverseChange:
		return say(n.words("Perhaps this is the wrong way round.", "It may be that a condition is reversed."))
	case logicChange:
		if c.new == "or" {
			return say(n.words("Perhaps one of the two conditions is enough.", "Must both really hold?"))
		}
		return say(n.words("Perhaps both conditions must hold.", "Is one of the two conditions really enough?"))
	case operatorChange:
		return say(fmt.Sprintf(n.words("Perhaps `%s` should be `%s`.", "Is `%s` right, or should it be `%s`?"), c.old, c.new))
	case numberChange:
		a, errA := strconv.Atoi(c.old)
		b, errB := strconv.Atoi(c.new)
		if errA == nil && errB == nil && (a-b == 1 || b-a == 1) {
			return say(n.words("This looks like it could be off by one.", "Perhaps this is off by one."))
		}
		return say(fmt.Sprintf("Perhaps the number should be `%s`.", c.new))
	case nameChange:
		if strings.Contains(c.old+c.new, "`") {
			break
		}
		m := say(fmt.Sprintf(n.words("Perhaps `%s` is not what should be here, but `%s`.", "Should this be `%[2]s` and not `%[1]s`?"), c.old, c.new))
		return n.sibling(c).then(m)
	case orderChange:
		return say(n.words("Perhaps these are in the wrong order.", "The order could be wrong."))
	case removalChange:
		if strings.Contains(c.old, "`") {
			break
		}
		return say(fmt.Sprintf("Perhaps `%s` is too much.", strings.TrimSpace(c.old)))
	case argumentChange:
		name, _, _ := strings.Cut(strings.TrimLeft(c.new, ", *"), "=")
		return say(fmt.Sprintf(n.words("`%s` is not passed on here. Perhaps it should be.", "The call leaves out `%s`."), name))
	}
	return message{}
}

// sibling says which other statement of the function has, in the same position, what a change puts in place of a name or string.
func (n *Notes) sibling(c change) message {
	f, ok := n.FunctionAt(c.at)
	if !ok {
		return message{}
	}
	statement, _ := tokenize(strings.TrimSpace(c.line))
	i := slices.IndexFunc(statement, func(t token) bool { return t.text == c.new })
	if i < 0 || i+1 == len(statement) || strings.ContainsAny(statement[i+1].text, ")],:") {
		return message{}
	}
	for _, st := range n.statements(f) {
		for j, t := range st.tokens {
			isSame := t.text == c.new && j+1 < len(st.tokens) && st.tokens[j+1].text == statement[i+1].text && (j == 0) == (i == 0) && (j == 0 || st.tokens[j-1].text == statement[i-1].text)
			if st.Place != c.at && isSame {
				return say(fmt.Sprintf("Line %d has `%s` in this position.", st.Line, c.new), schemas.Claim{Kind: schemas.ClaimSource, File: st.File, Line: st.Line, Text: n.text(st.Place)})
			}
		}
	}
	return message{}
}

// equalOperands returns the two operands of a comparison if they have the same printed value.
func equalOperands(c change, stop Stop) (a, b string, ok bool) {
	for i, v := range stop.Values {
		for _, w := range stop.Values[:i] {
			isCompared := strings.Contains(c.original, w.Expression+" "+c.old+" "+v.Expression) || strings.Contains(c.original, v.Expression+" "+c.old+" "+w.Expression)
			if v.Text == w.Text && !v.IsError && v.Expression != w.Expression && isCompared {
				return w.Expression, v.Expression, true
			}
		}
	}
	return "", "", false
}

// sayTry says why the agent evaluates a changed expression.
func (n *Notes) sayTry(c change, stop Stop) message {
	if n.times(c) > 0 {
		return say(fmt.Sprintf(n.words("And what does `%s` give in this call?", "In this call, what is `%s`?"), c.expression))
	}
	m := n.suspect(c, stop)
	if m.text == "" {
		return say(fmt.Sprintf(n.words("What would `%s` give instead?", "I try `%s` in its place.", "Perhaps it should be `%s`. I evaluate that here."), c.expression))
	}
	return m.then(say(fmt.Sprintf(n.words("I evaluate `%s`.", "I try `%s` in its place.", "What does `%s` give?"), c.expression)))
}

// refutes says why an experiment does not explain the failure, as a part of a sentence, or "".
func (n *Notes) refutes(stop Stop, expression, value string) string {
	f, ok := n.FunctionAt(stop.Place)
	if !ok {
		return ""
	}
	for _, st := range n.tested(f, stop) {
		outcome, known := n.outcome(st)
		if !known || oneLine(st.evaluated()) == expression {
			continue
		}
		left, right, compared := n.sides()
		for _, c := range n.changes(f, st) {
			switch {
			case c.expression != expression:
			case value == outcome.Text:
				return n.words("which makes no difference", "too", "the same as before")
			case compared && slices.Contains([]string{left, right}, outcome.Text) && !slices.Contains([]string{left, right}, value):
				return n.words("which is not what the test compares with, either", "but the test does not compare with that")
			}
		}
	}
	return ""
}
