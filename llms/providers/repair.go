package providers

// Mending arguments that are no JSON object, where there is only one thing they
// can mean. What was cut off is never completed: nobody knows how it went on.

import (
	"encoding/json"
	"strings"
)

// repaired is the object that text must mean: one that was encoded twice, that
// stands in a code fence, whose texts hold bare line ends or escapes that JSON
// does not know, or that has a comma too many.
func repaired(text string) (json.RawMessage, bool) {
	text = unfenced(strings.TrimSpace(text))
	var once string
	if strings.HasPrefix(text, `"`) && json.Unmarshal([]byte(text), &once) == nil {
		text = strings.TrimSpace(once)
	}
	if args, err := canonicalObject(text); err == nil {
		return args, true
	}
	args, err := canonicalObject(respelled(text))
	return args, err == nil
}

func unfenced(text string) string {
	inner, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	if inner, ok = strings.CutSuffix(inner, "```"); !ok {
		return text
	}
	return strings.TrimSpace(strings.TrimPrefix(inner, "json"))
}

// bareSpace is what code has between its lines and before them; other control
// characters are no slip of a model.
var bareSpace = map[byte]string{'\n': `\n`, '\r': `\r`, '\t': `\t`}

// respelled is text with each string as JSON spells it, and without commas
// before a closing bracket.
func respelled(text string) string {
	var out strings.Builder
	inside := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case !inside && c == ',':
			rest := strings.TrimLeft(text[i+1:], " \t\r\n")
			if strings.HasPrefix(rest, "}") || strings.HasPrefix(rest, "]") {
				continue
			}
		case c == '"':
			inside = !inside
		case inside && bareSpace[c] != "":
			out.WriteString(bareSpace[c])
			continue
		case inside && c == '\\' && i+1 < len(text):
			next := text[i+1]
			i++
			switch {
			case next == '\'':
				out.WriteByte('\'')
			case strings.IndexByte(`"\/bfnrt`, next) >= 0, next == 'u' && isHex(text[i+1:]):
				out.WriteByte('\\')
				out.WriteByte(next)
			default: // a backslash that is meant as one
				out.WriteString(`\\`)
				i--
			}
			continue
		}
		out.WriteByte(c)
	}
	return out.String()
}

func isHex(text string) bool {
	return len(text) >= 4 && strings.Trim(text[:4], "0123456789abcdefABCDEF") == ""
}
