package leak

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is a word or a punctuation character of a text. at and end are byte offsets.
type token struct {
	hash       uint64
	at, end    int
	word       bool
	startsUnit bool // first token of a line, or first after # or :
}

// lookalikes maps letters that look like ASCII letters to these.
var lookalikes = map[rune]rune{
	'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y', 'х': 'x', 'і': 'i', 'ѕ': 's', 'ј': 'j', 'ԁ': 'd', 'һ': 'h', 'ո': 'n', 'ʀ': 'r',
	'А': 'A', 'В': 'B', 'Е': 'E', 'К': 'K', 'М': 'M', 'Н': 'H', 'О': 'O', 'Р': 'P', 'С': 'C', 'Т': 'T', 'Х': 'X', 'ı': 'i', 'ο': 'o', 'ν': 'v',
}

// class is the role of a byte in tokens.
type class byte

const (
	skipped  class = iota // spaces, quotes, backslashes and comment signs, which often differ between copies
	wordByte              // a letter, digit or underscore
	punctuation
	nonASCII // a byte of a character beyond ASCII
)

var classes = func() (out [256]class) {
	for b := range 256 {
		switch c := rune(b); {
		case b >= utf8.RuneSelf:
			out[b] = nonASCII
		case c == '_', c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			out[b] = wordByte
		case b > ' ' && b < 127 && !strings.ContainsRune("'\"`\\#;", c):
			out[b] = punctuation
		}
	}
	return out
}()

const fnvOffset, fnvPrime = 14695981039346656037, 1099511628211

// words returns the tokens of a text, in the memory of into. Words that differ only in case have the same hash unless
// exact is set. A comma before a closing bracket is left out, because formatters add and remove it.
func words(text string, exact bool, into []token) []token {
	out, startsUnit := into[:0], true
	for i := 0; i < len(text); {
		switch classes[text[i]] {
		case skipped:
			startsUnit = startsUnit || text[i] == '\n' || text[i] == '#'
			i++
		case punctuation:
			if text[i] != ',' || !beforeClosing(text[i+1:]) {
				out = append(out, token{hash: fnvOffset ^ uint64(text[i])*fnvPrime, at: i, end: i + 1, startsUnit: startsUnit})
				startsUnit = text[i] == ':'
			}
			i++
		default:
			t, next := word(text, i, exact)
			if t.word {
				t.startsUnit = startsUnit
				out, startsUnit = append(out, t), false
			}
			i = next
		}
	}
	return out
}

// beforeClosing reports whether the next character that is not white space is a closing bracket.
func beforeClosing(rest string) bool {
	rest = strings.TrimLeft(rest[:min(len(rest), 200)], " \t\r\n")
	return rest != "" && strings.ContainsRune(")]}", rune(rest[0]))
}

// word reads the word at i, and returns the offset after it. Invisible characters do not end a word.
func word(text string, i int, exact bool) (token, int) {
	t := token{hash: fnvOffset, at: i, end: i}
	for i < len(text) {
		c, size := rune(text[i]), 1
		switch classes[text[i]] {
		case wordByte:
		case nonASCII:
			c, size = utf8.DecodeRuneInString(text[i:])
			if like, ok := lookalikes[c]; ok {
				c = like
			}
			if unicode.Is(unicode.Cf, c) || unicode.Is(unicode.Mn, c) {
				i += size
				continue
			}
			if !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' {
				if !t.word {
					i += size
				}
				return t, i
			}
		default:
			return t, i
		}
		if !exact && c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		t.hash = (t.hash ^ uint64(c)) * fnvPrime
		i += size
		t.end, t.word = i, true
	}
	return t, i
}

const rollBase = 0x9E3779B97F4A7C15

// windows calls each with the hash of every n tokens in a row and the index of the first of them.
func windows(toks []token, n int, each func(hash uint64, first int)) {
	if len(toks) < n {
		return
	}
	var hash, top uint64 = 0, 1
	for range n {
		top *= rollBase
	}
	for i, t := range toks {
		hash = hash*rollBase + t.hash
		if i >= n {
			hash -= top * toks[i-n].hash
		}
		if i >= n-1 {
			each(hash, i-n+1)
		}
	}
}

func hashOf(toks []token) (hash uint64) {
	for _, t := range toks {
		hash = hash*rollBase + t.hash
	}
	return hash
}
