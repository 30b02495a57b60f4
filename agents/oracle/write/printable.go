package write

import (
	"regexp"
	"slices"
	"strings"
)

// maxOperands is the number of values that the agent prints at once.
const maxOperands = 3

// printable returns the expressions that the agent can print at a stop: what the current statement uses, names of the
// function, attributes and elements that the source mentions, and the value that the current statement computes.
func (n *Notes) printable(f Function, stop Stop) []string {
	var out []string
	isNew := func(expression string) bool {
		_, printed := stop.Value(expression)
		return expression != "" && !n.hasEffect(f, expression) && !printed && !slices.Contains(out, expression) && len(expression) <= 120 && !strings.Contains(expression, "`") && !isConstant(expression)
	}
	add := func(expression string) {
		if isNew(expression) {
			out = append(out, expression)
		}
	}
	add(oneLine(n.Result())) // the next line can be above, at the head of a loop
	for _, v := range stop.Values {
		if isObject(v.Text) && strings.Contains(v.Text, " object at 0x") && !iterator.MatchString(v.Text) && !v.IsError {
			add(Attributes(v.Expression))
		}
	}
	names, statements := n.names(f), n.statements(f)
	for _, st := range statements {
		if st.Line == stop.Line && stop.Event == "line" {
			operands := slices.DeleteFunc(st.operands(names), func(o string) bool { return !isNew(o) })
			if len(operands) > 1 {
				add(strings.Join(operands[:min(len(operands), maxOperands)], ", "))
			}
			for _, o := range operands {
				add(o)
			}
			add(oneLine(st.evaluated()))
		}
	}
	for _, st := range statements {
		if st.Line <= stop.Line || stop.Event == "return" {
			for _, chain := range chains(st.tokens, st.text) {
				add(oneLine(chain))
			}
		}
	}
	for _, name := range names {
		if name != "self" && name != "cls" {
			add(name)
		}
	}
	return out
}

// mutators holds methods and functions that change an object, read a file, or print.
var mutators = wordSet(`pop popleft popitem append appendleft extend extendleft insert remove add discard clear update setdefault sort reverse
	send write writelines read readline readlines close seek next input open print setattr delattr exec`)

// hasEffect reports whether evaluating an expression may change the state of the program, as far as its text says that.
func hasEffect(expression string) bool {
	tokens, _ := tokenize(expression)
	for i, t := range tokens {
		if t.is(":=", "await", "yield") || mutators[t.text] && i+1 < len(tokens) && tokens[i+1].is("(") {
			return true
		}
	}
	return false
}

// iterator matches the text of a value that can be read only once.
var iterator = regexp.MustCompile(`^<(generator|zip|map|filter|enumerate|reversed|itertools\.|_io\.|_csv\.reader|\w+iterator)`)

// hasEffect reports whether evaluating an expression in a function may change the state of the program, also by reading an iterator to
// its end, as far as the source and the printed values tell.
func (n *Notes) hasEffect(f Function, expression string) bool {
	if hasEffect(expression) {
		return true
	}
	once := map[string]bool{}
	for _, st := range n.statements(f) {
		if first := st.source(st.first, st.first); st.kind == assignStatement && st.first+1 < len(st.tokens) && st.tokens[st.first+1].is("(") {
			once[st.target] = once[st.target] || isIteratorType[first]
		}
	}
	for _, stop := range n.Stops {
		for _, v := range stop.Values {
			if stop.File == f.File && stop.Function == f.Name && iterator.MatchString(v.Text) {
				once[v.Expression] = true
			}
		}
	}
	tokens, _ := tokenize(expression)
	isUsed := func(t token) bool { return t.kind == nameToken && once[t.text] }
	return len(tokens) > 1 && slices.ContainsFunc(tokens, isUsed)
}

var isIteratorType = wordSet(`zip map filter enumerate reversed iter`)

// operands returns the names, attributes and elements that the expression of a statement uses.
func (s *statement) operands(names []string) []string {
	if s.last < s.first {
		return nil
	}
	tokens := s.tokens[s.first : s.last+1]
	var out []string
	inner := bound(tokens)
	longest := slices.DeleteFunc(chains(tokens, s.text), func(c string) bool {
		parts, _ := tokenize(c)
		return slices.ContainsFunc(parts, func(t token) bool { return t.kind == nameToken && inner[t.text] })
	})
	for i, t := range tokens {
		isPart := i > 0 && tokens[i-1].is(".") || i+1 < len(tokens) && tokens[i+1].is("(", "=", ".", "[")
		if t.kind == nameToken && !isPart && !inner[t.text] && slices.Contains(names, t.text) && !slices.Contains(out, t.text) {
			out = append(out, t.text)
		}
	}
	for i, c := range longest { // the longest chain of those that begin in the same way
		if (i+1 == len(longest) || !strings.HasPrefix(longest[i+1], c)) && !slices.Contains(out, oneLine(c)) && len(c) <= 40 {
			out = append(out, oneLine(c))
		}
	}
	return out
}

// bound returns the names that exist only inside of an expression: the variables of its comprehensions and lambdas.
func bound(tokens []token) map[string]bool {
	out := map[string]bool{}
	end := "" // of the names
	for _, t := range tokens {
		switch {
		case t.is("for"):
			end = "in"
		case t.is("lambda"):
			end = ":"
		case end != "" && t.is(end):
			end = ""
		case end != "" && t.kind == nameToken:
			out[t.text] = true
		}
	}
	return out
}

// chains returns the names in a statement with their attributes and elements, such as self.items[0], without calls.
func chains(tokens []token, text string) []string {
	var out []string
	for i, t := range tokens {
		if t.kind != nameToken || i > 0 && tokens[i-1].is(".") || i+1 < len(tokens) && tokens[i+1].is("(", "=") {
			continue
		}
		end := i
		for j := i + 1; j < len(tokens); {
			switch {
			case tokens[j].is(".") && j+1 < len(tokens) && (j+2 >= len(tokens) || !tokens[j+2].is("(")):
				j++
			case tokens[j].is("["):
				if j = closing(tokens, j); j < 0 {
					return out
				}
			default:
				j = len(tokens)
				continue
			}
			end = j
			out = append(out, text[t.at:tokens[end].end])
			j++
		}
	}
	return out
}
