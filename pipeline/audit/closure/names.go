package closure

import "strings"

// Names adds the identifiers of a Python file to names, without those of comments and texts. A string
// that is one word may be a key or an attribute, so it counts.
func Names(source string, names map[string]bool) {
	for i := 0; i < len(source); {
		switch b := source[i]; {
		case classes[b] == letter:
			start := i
			for i < len(source) && classes[source[i]]&(letter|digit) != 0 {
				i++
			}
			if i-start > 1 && (i == len(source) || source[i] != '"' && source[i] != '\'') { // not the prefix of a string
				names[source[start:i]] = true
			}
		case b == '#':
			for i < len(source) && source[i] != '\n' {
				i++
			}
		case b == '"' || b == '\'':
			quote := source[i : i+1]
			if strings.HasPrefix(source[i:], strings.Repeat(quote, 3)) {
				quote = strings.Repeat(quote, 3)
			}
			start := i + len(quote)
			for i = start; i < len(source) && !strings.HasPrefix(source[i:], quote) && (len(quote) == 3 || source[i] != '\n'); i++ {
				if source[i] == '\\' {
					i++
				}
			}
			if i = min(i, len(source)); i-start > 1 && isWordText(source[start:i]) && classes[source[start]] == letter {
				names[source[start:i]] = true
			}
			i = min(i+len(quote), len(source))
		default:
			i++
		}
	}
}
