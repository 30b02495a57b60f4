package closure

import (
	"math/bits"
	"strconv"
	"strings"
)

// This file splits texts into words, numbers and paths.

// Seeds separate the kinds of tokens in one set.
const (
	wordSeed   = 14695981039346656037
	pathSeed   = wordSeed ^ 1<<60
	numberSeed = wordSeed ^ 2<<60
	shownSeed  = wordSeed ^ 3<<60 // numbers that the task or an observation has shown, unlike the tools' descriptions
	traceSeed  = wordSeed ^ 4<<60 // words of lines that name a place, as those of a traceback do
	prime      = 1099511628211
)

// Classes of bytes.
const (
	letter = 1 << iota // also the underscore
	digit
	mark // joins names: . / -
)

var classes = func() (out [256]byte) {
	for c := range 128 {
		switch {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_':
			out[c] = letter
		case '0' <= c && c <= '9':
			out[c] = digit
		case c == '.' || c == '/' || c == '-':
			out[c] = mark
		}
	}
	for c := 128; c < 256; c++ { // letters of other languages
		out[c] = letter
	}
	return out
}()

func hash(seed uint64, text string) uint64 {
	for i := 0; i < len(text); i++ {
		seed = (seed ^ uint64(text[i])) * prime
	}
	return seed
}

// set is a hash table of hashes, with the number of the text that had each last.
type set struct {
	slots []uint64
	last  []int32
	n     int
	now   int32
}

// lastText returns the number of the last text that had a token, or 0.
func (s *set) lastText(h uint64) int32 {
	if len(s.slots) == 0 {
		return 0
	}
	for i := h >> (64 - uint(bits.Len(uint(len(s.slots)-1)))); ; i++ {
		switch at := i & uint64(len(s.slots)-1); s.slots[at] {
		case h:
			return s.last[at]
		case 0:
			return 0
		}
	}
}

func (s *set) has(h uint64) bool { return s.lastText(h) > 0 }

func (s *set) add(h uint64) { s.put(h, s.now) }

func (s *set) put(h uint64, text int32) {
	if 2*s.n >= len(s.slots) {
		slots, last := s.slots, s.last
		s.slots, s.last, s.n = make([]uint64, max(512, 4*len(slots))), make([]int32, max(512, 4*len(slots))), 0
		for i, x := range slots {
			if x != 0 {
				s.put(x, last[i])
			}
		}
	}
	for i := h >> (64 - uint(bits.Len(uint(len(s.slots)-1)))); ; i++ {
		switch at := i & uint64(len(s.slots)-1); s.slots[at] {
		case 0:
			s.slots[at] = h
			s.n++
			fallthrough
		case h:
			s.last[at] = text
			return
		}
	}
}

// numberAt returns the number at the start of a text in canonical form, and its length in the text.
func numberAt(text string) (value string, length int) {
	if len(text) > 2 && text[0] == '0' && (text[1]|32 == 'x' || text[1]|32 == 'b' || text[1]|32 == 'o') {
		end := 2
		for end < len(text) && classes[text[end]]&(letter|digit) != 0 {
			end++
		}
		if n, err := strconv.ParseUint(text[:end], 0, 64); err == nil {
			return strconv.FormatUint(n, 10), end
		}
	}
	digits := func(from int) int {
		for from < len(text) && (classes[text[from]] == digit || text[from] == '_' && from+1 < len(text) && classes[text[from+1]] == digit) {
			from++
		}
		return from
	}
	end := digits(0)
	for end <= 3 && end+3 < len(text) && text[end] == ',' && digits(end+1) == end+4 || end > 3 && end+3 < len(text) && text[end] == ',' && strings.Contains(text[:end], ",") && digits(end+1) == end+4 {
		end += 4
	}
	whole := end
	if end+1 < len(text) && text[end] == '.' && classes[text[end+1]] == digit {
		end = digits(end + 1)
	}
	if end+1 < len(text) && text[end]|32 == 'e' {
		from := end + 1
		if text[from] == '-' || text[from] == '+' {
			from++
		}
		if to := digits(from); to > from && (to == len(text) || classes[text[to]]&letter == 0) {
			if f, err := strconv.ParseFloat(strings.ReplaceAll(text[:to], "_", ""), 64); err == nil {
				return strconv.FormatFloat(f, 'f', -1, 64), to
			}
		}
	}
	value = text[:end]
	if strings.ContainsAny(value, ",_") {
		value = strings.NewReplacer(",", "", "_", "").Replace(value)
	}
	if whole < end {
		value = strings.TrimRight(strings.TrimRight(value, "0"), ".")
	}
	for len(value) > 1 && value[0] == '0' && value[1] != '.' {
		value = value[1:]
	}
	return value, end
}

var numberWords = map[string]int{
	"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
	"thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20,
	"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}

// numberWord reads a number of at least 10 in words, such as forty-three, at the start of a text.
func numberWord(text string) (n, length int) {
	end := 0
	for end < len(text) && classes[text[end]] == letter {
		end++
	}
	n = numberWords[strings.ToLower(text[:end])]
	if n < 10 {
		return 0, 0
	}
	if n >= 20 && end < len(text) && (text[end] == '-' || text[end] == ' ') {
		last := end + 1
		for last < len(text) && classes[text[last]] == letter {
			last++
		}
		unit := strings.ToLower(text[end+1 : last])
		if unit == "one" {
			return n + 1, last
		}
		if m := numberWords[unit]; m > 0 && m < 10 {
			return n + m, last
		}
	}
	return n, end
}

func atoi(digits string) (n int) {
	for i := 0; i < len(digits) && digits[i] >= '0' && digits[i] <= '9' && n < maxLine; i++ {
		n = 10*n + int(digits[i]-'0')
	}
	return n
}

// cleanPath removes the marks around a path in a text.
func cleanPath(text string) string {
	for text != "" && (text[0] == '-' || text[0] == '/' || len(text) > 1 && text[0] == '.' && text[1] == '/') {
		text = text[1:]
	}
	for text != "" && classes[text[len(text)-1]] == mark {
		text = text[:len(text)-1]
	}
	return text
}

// isPath reports whether a run of letters and marks is a path: it has a directory or a known ending.
func isPath(text string) bool {
	dot := strings.LastIndexByte(text, '.')
	if strings.IndexByte(text, '/') > 0 {
		return true
	}
	if dot <= 0 {
		return false
	}
	switch text[dot+1:] { // faster than a map
	case "py", "pyi", "pyx", "txt", "md", "rst", "toml", "cfg", "ini", "json", "yaml", "yml", "csv", "sh", "html", "xml", "sql", "lock", "log", "c", "h", "js":
		return true
	}
	return false
}

func baseName(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// maxLine limits the numbers of lines, so that a made-up number costs no memory.
const maxLine = 1 << 18

func isWordText(text string) bool {
	for i := 0; i < len(text); i++ {
		if classes[text[i]]&(letter|digit) == 0 {
			return false
		}
	}
	return text != ""
}

// hasCodeShape reports whether a word has an underscore, digits or inner capitals.
func hasCodeShape(w string) bool {
	if strings.Trim(w, "_") == "" {
		return false
	}
	hasLower := false
	for i := 0; i < len(w); i++ {
		switch b := w[i]; {
		case b == '_', classes[b] == digit:
			return true
		case 'a' <= b && b <= 'z':
			hasLower = true
		case 'A' <= b && b <= 'Z' && hasLower:
			return true
		}
	}
	return false
}
