package tokens

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// splitter returns the length of the first word of a non-empty text. No token spans words,
// and a word on its own is split into itself.
//
// The splitters implement the patterns of the vocabularies: pat_str in
// tiktoken_ext/openai_public.py of openai/tiktoken, splitRegexp in the codecs. The patterns
// look ahead, so the codecs use a backtracking matcher, which takes most of the time of
// counting. The matcher deviates slightly from the patterns, and the splitters deviate in
// the same way: counts are those of the codecs.
type splitter func(s string) int

// Classes of characters, one bit each. An invalid byte is a character of class other.
const (
	upper  = 1 << iota // \p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}
	lower              // \p{Ll}\p{Lm}\p{Lo}\p{M}
	letter             // \p{L}
	number             // \p{N}
	space              // \s
	other              // [^\s\p{L}\p{N}]
	prefix             // [^\r\n\p{L}\p{N}]
)

// charClasses contains the classes of every character. It takes a megabyte and is created when
// it is first needed. Searching the tables of package unicode would take longer than all the
// rest.
type charClasses [unicode.MaxRune + 1]uint8

var newCharClasses = sync.OnceValue(func() *charClasses {
	a := new(charClasses)
	for _, set := range []struct {
		table *unicode.RangeTable
		class uint8
	}{
		{unicode.Lu, upper | letter},
		{unicode.Lt, upper | letter},
		{unicode.Ll, lower | letter},
		{unicode.Lm, upper | lower | letter},
		{unicode.Lo, upper | lower | letter},
		{unicode.M, upper | lower},
		{unicode.N, number},
		{unicode.White_Space, space},
	} {
		for _, r := range set.table.R16 {
			for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
				a[c] |= set.class
			}
		}
		for _, r := range set.table.R32 {
			for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
				a[c] |= set.class
			}
		}
	}
	for c := range a {
		if a[c]&(letter|number|space) == 0 {
			a[c] |= other
		}
		if a[c]&(letter|number) == 0 && c != '\r' && c != '\n' {
			a[c] |= prefix
		}
	}
	a[0x7f] = 0 // in none of the matcher's sets: it is skipped and is not a token
	return a
})

// ASCII letters, and the ASCII characters that may precede them in a word.
var asciiLower, asciiLetter, asciiPrefix = func() (asciiLower, asciiLetter, asciiPrefix [256]bool) {
	for c := range utf8.RuneSelf {
		asciiLower[c] = 'a' <= c && c <= 'z'
		asciiLetter[c] = asciiLower[c] || 'A' <= c && c <= 'Z'
		asciiPrefix[c] = !asciiLetter[c] && (c < '0' || c > '9') && c != '\r' && c != '\n' && c != 0x7f
	}
	return
}()

// commonWord returns the end of a common kind of word: ASCII letters after at most one other
// character, and not before a non-ASCII character. It returns 0 for other words.
func commonWord(s string, letters *[256]bool) int {
	start := 0
	if asciiPrefix[s[0]] {
		start = 1
	}
	end := start
	for end < len(s) && letters[s[end]] {
		end++
	}
	if end == start || end < len(s) && s[end] >= utf8.RuneSelf {
		return 0
	}
	return end
}

// o200k is the splitter for o200k_base. A word consists of an optional other character,
// upper-case letters, lower-case letters, and an optional contraction.
func (a *charClasses) o200k(s string) int {
	if end := commonWord(s, &asciiLower); end > 0 && (end == len(s) || s[end] != '\'') {
		return end
	}
	if len(s) > 1 && asciiPrefix[s[0]] && s[1] < utf8.RuneSelf && !asciiLetter[s[1]] {
		return a.numberOrSymbols(s, '/')
	}
	first, n := a.classAt(s, 0)
	if first&prefix != 0 {
		if end, hasLower := a.letters(s, n); hasLower || end > n && first&lower == 0 {
			return end
		}
	}
	if first&(upper|lower) != 0 {
		end, _ := a.letters(s, 0)
		return end
	}
	return a.numberOrSymbols(s, '/')
}

// letters returns the end of the letters at from and of the contraction after them. The letters
// are upper-case letters followed by at least one lower-case letter, or only upper-case
// letters; many letters count as both. If there are none, it returns from. hasLower reports
// whether there is a lower-case letter.
func (a *charClasses) letters(s string, from int) (end int, hasLower bool) {
	i := from
	for {
		class, n := a.classAt(s, i)
		if class&upper == 0 {
			break
		}
		if i += n; class&lower != 0 {
			end, hasLower = i, true
		}
	}
	if after := a.runEnd(s, i, lower); after > i {
		end, hasLower = after, true
	}
	if !hasLower {
		end = i
	}
	if end == from {
		return from, false
	}
	return end + contraction(s[end:]), hasLower
}

// cl100k is the splitter for cl100k_base.
func (a *charClasses) cl100k(s string) int {
	if end := commonWord(s, &asciiLetter); end > 0 && s[0] != '\'' {
		return end
	}
	if n := contraction(s); n > 0 {
		return n
	}
	first, n := a.classAt(s, 0)
	if first&prefix == 0 {
		n = 0
	}
	if end := a.runEnd(s, n, letter); end > n {
		return end
	}
	return a.numberOrSymbols(s, '\n')
}

// numberOrSymbols implements the part that both patterns have in common: up to three digits;
// other characters after an optional space, followed by line ends or the character after; or
// white space.
func (a *charClasses) numberOrSymbols(s string, after byte) int {
	first, n := a.classAt(s, 0)
	if first&number != 0 {
		for range 2 {
			next, m := a.classAt(s, n)
			if next&number == 0 {
				break
			}
			n += m
		}
		return n
	}
	start := 0
	if s[0] == ' ' {
		start = 1
	}
	if end := a.runEnd(s, start, other); end > start {
		for end < len(s) && (lineEnd(s[end]) || s[end] == after) {
			end++
		}
		return end
	}
	return max(n, a.whiteSpace(s))
}

// whiteSpace returns the end of the white space: after its first line ends (the pattern says
// the last), or before its last character, which belongs to the next word.
func (a *charClasses) whiteSpace(s string) int {
	end := a.runEnd(s, 0, space)
	for i := range end {
		if lineEnd(s[i]) {
			for i < end && lineEnd(s[i]) {
				i++
			}
			return i
		}
	}
	if end == len(s) {
		return end
	}
	_, last := utf8.DecodeLastRuneInString(s[:end])
	return end - last
}

func lineEnd(c byte) bool { return c == '\n' || c == '\r' }

// classAt returns the class of the character at i and its length, or 0 and 0 at the end.
func (a *charClasses) classAt(s string, i int) (class uint8, n int) {
	if i < len(s) && s[i] < utf8.RuneSelf {
		return a[s[i]], 1
	}
	return a.nonASCII(s[i:])
}

// nonASCII is the part of classAt for non-ASCII characters. It is separate so that classAt can
// be inlined.
func (a *charClasses) nonASCII(s string) (class uint8, n int) {
	if s == "" {
		return 0, 0
	}
	r, n := utf8.DecodeRuneInString(s)
	return a[r], n
}

// runEnd returns the end of the characters from i on that have one of the classes.
func (a *charClasses) runEnd(s string, i int, classes uint8) int {
	for i < len(s) {
		class, n := a[s[i]], 1
		if s[i] >= utf8.RuneSelf {
			class, n = a.nonASCII(s[i:])
		}
		if class&classes == 0 {
			break
		}
		i += n
	}
	return i
}

// contraction returns the length of a contraction at the beginning of s, or 0 if there is none:
// (?i:'s|'t|'re|'ve|'m|'ll|'d). The long s also counts as s.
func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	}
	if strings.HasPrefix(s[1:], "ſ") {
		return 1 + len("ſ")
	}
	if len(s) >= 3 {
		switch string([]byte{s[1] | 0x20, s[2] | 0x20}) {
		case "re", "ve", "ll":
			return 3
		}
	}
	return 0
}
