package providers

// Repair of arguments that are not a JSON object but have only one possible meaning.
// Truncated arguments are never completed.

import (
	"encoding/json"
	"strings"
)

// repair returns the object that text means. It accepts an object that is encoded twice or
// enclosed in a code fence, unescaped line ends and invalid escapes in strings, and trailing
// commas.
func repair(text string) (json.RawMessage, bool) {
	text = stripCodeFence(strings.TrimSpace(text))
	var once string
	if strings.HasPrefix(text, `"`) && json.Unmarshal([]byte(text), &once) == nil {
		text = strings.TrimSpace(once)
	}
	if args, err := canonicalObject(text); err == nil {
		return args, true
	}
	args, err := canonicalObject(fixStrings(text))
	return args, err == nil
}

func stripCodeFence(text string) string {
	inner, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	if inner, ok = strings.CutSuffix(inner, "```"); !ok {
		return text
	}
	return strings.TrimSpace(strings.TrimPrefix(inner, "json"))
}

// bareSpace maps white space that occurs in code to its escape. Other control characters
// are not repaired.
var bareSpace = map[byte]string{'\n': `\n`, '\r': `\r`, '\t': `\t`}

// fixStrings returns text with valid escapes in its strings and without commas before a
// closing bracket.
func fixStrings(text string) string {
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
			default: // a literal backslash
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
