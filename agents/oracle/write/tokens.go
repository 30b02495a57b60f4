package write

import "strings"

// Kinds of tokens.
const (
	nameToken     = 'n'
	keywordToken  = 'k'
	numberToken   = '0'
	stringToken   = 's'
	operatorToken = 'o'
)

// token is a token of a Python statement. at and end are bytes of the text.
type token struct {
	kind    byte
	text    string
	at, end int
}

func (t token) is(texts ...string) bool {
	if t.kind == stringToken {
		return false
	}
	for _, s := range texts {
		if t.text == s {
			return true
		}
	}
	return false
}

// nesting returns 1 for an opening bracket, -1 for a closing one, and 0 for other tokens.
func (t token) nesting() int {
	switch {
	case t.is("(", "[", "{"):
		return 1
	case t.is(")", "]", "}"):
		return -1
	}
	return 0
}

var keywords = wordSet(`False None True and as assert async await break class continue def del elif else except finally for from
	global if import in is lambda nonlocal not or pass raise return try while with yield`)

// operators holds the operators of several characters, the longest first.
var operators = []string{"**=", "//=", ">>=", "<<=", "...", "->", ":=", "==", "!=", "<=", ">=", "**", "//", "<<", ">>",
	"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@="}

func wordSet(text string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		m[w] = true
	}
	return m
}

// tokenize splits Python source, which may have several lines, into tokens. It leaves out white
// space and comments. ok is false if the text ends within a string.
func tokenize(text string) (out []token, ok bool) {
	for i := 0; i < len(text); {
		c := text[i]
		end := i + 1
		kind := byte(operatorToken)
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\\':
			i++
			continue
		case c == '#':
			for i < len(text) && text[i] != '\n' {
				i++
			}
			continue
		case isNameStart(c):
			for end < len(text) && (isNameStart(text[end]) || isDigit(text[end])) {
				end++
			}
			kind = nameToken
			if word := text[i:end]; keywords[word] {
				kind = keywordToken
			} else if end < len(text) && isQuote(text[end]) && isStringPrefix(word) {
				if end, ok = endOfString(text, end); !ok {
					return out, false
				}
				kind = stringToken
			}
		case isQuote(c):
			if end, ok = endOfString(text, i); !ok {
				return out, false
			}
			kind = stringToken
		case isDigit(c) || c == '.' && end < len(text) && isDigit(text[end]):
			end = endOfNumber(text, i)
			kind = numberToken
		default:
			for _, op := range operators {
				if strings.HasPrefix(text[i:], op) {
					end = i + len(op)
					break
				}
			}
		}
		out = append(out, token{kind, text[i:end], i, end})
		i = end
	}
	return out, true
}

func isNameStart(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isQuote(c byte) bool { return c == '\'' || c == '"' }

func isStringPrefix(word string) bool {
	return len(word) <= 2 && strings.Trim(strings.ToLower(word), "rbfut") == ""
}

// endOfString returns the end of the string literal whose quote is at a byte.
func endOfString(text string, at int) (end int, ok bool) {
	quote := text[at : at+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(text[at:], triple) {
		quote = triple
	}
	for i := at + len(quote); i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote), true
		case text[i] == '\n' && len(quote) == 1:
			return 0, false
		}
	}
	return 0, false
}

func endOfNumber(text string, at int) int {
	end := at
	for end < len(text) {
		c := text[end]
		isExponentSign := (c == '+' || c == '-') && end > at && (text[end-1] == 'e' || text[end-1] == 'E') && !strings.HasPrefix(text[at:], "0x")
		if !isDigit(c) && c != '.' && !isNameStart(c) && !isExponentSign {
			break
		}
		end++
	}
	return end
}

// closing returns the index of the token that closes the bracket at index i, or -1.
func closing(tokens []token, i int) int {
	depth := 0
	for j := i; j < len(tokens); j++ {
		switch {
		case tokens[j].is("(", "[", "{"):
			depth++
		case tokens[j].is(")", "]", "}"):
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return -1
}

// opening returns the index of the token that opens the bracket that the token at index i closes, or -1.
func opening(tokens []token, i int) int {
	depth := 0
	for j := i; j >= 0; j-- {
		switch {
		case tokens[j].is(")", "]", "}"):
			depth++
		case tokens[j].is("(", "[", "{"):
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return -1
}

// oneLine writes an expression of several lines as one line with the same value.
func oneLine(expression string) string {
	tokens, ok := tokenize(expression)
	if !ok || !strings.Contains(expression, "\n") {
		return strings.TrimSpace(expression)
	}
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 {
			last := tokens[i-1]
			gap := expression[last.end:t.at]
			switch {
			case !strings.Contains(gap, "\n"):
				b.WriteString(gap)
			case last.nesting() < 1 && t.nesting() >= 0:
				b.WriteByte(' ')
			}
		}
		b.WriteString(strings.NewReplacer("\\\n", "", "\n", `\n`).Replace(t.text))
	}
	return b.String()
}
