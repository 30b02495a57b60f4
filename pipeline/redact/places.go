package redact

// This file finds secrets that are not assigned to a name but occur near one: in a sentence, in a
// call that fills in a field, in the answer to a prompt, or before the name.

import (
	"regexp"
	"strings"
)

// place is a set of places of a value relative to its name. The constants are its elements.
type place int

const (
	inSentence place = 1 << iota // the password of joe is VALUE
	inCall                       // fill("#password", "VALUE")
	belowName                    // (Pdb) p password ⏎ VALUE
	before                       // use VALUE as password
)

// possiblePlaces returns, by a quick test, the places in which a value may be near the name that
// begins at from. rest is the text after the name.
func (f *finder) possiblePlaces(from int, rest string) (p place) {
	line, next, more := strings.Cut(rest, "\n")
	if rest != "" {
		if (rest[0] == ' ' || strings.HasPrefix(rest, "'s ") || strings.HasPrefix(rest, "` ")) && strings.ContainsAny(line, "0123456789") {
			p |= inSentence
		}
		if strings.IndexByte("\"'`]/:*.,)?", rest[0]) >= 0 && strings.ContainsAny(rest[1:], "\"'`") {
			p |= inCall
		}
		if more && (f.separator(from) != 0 || line == "" || line[len(line)-1] == ':' || strings.TrimLeft(line, "/abcdefghijklmnopqrstuvwxyz.)]};\"'") == "" || strings.HasPrefix(next, "(") && line[0] == ',') {
			p |= belowName
		}
	}
	switch head := f.text[max(0, from-5):from]; {
	case head == "":
	case head[len(head)-1] == ' ':
		if end := head[:len(head)-1]; strings.HasSuffix(end, "=") || strings.HasSuffix(end, " is") || strings.HasSuffix(end, " as") || strings.HasSuffix(end, " the") || strings.HasSuffix(end, "your") || strings.HasSuffix(end, " my") || strings.HasSuffix(end, " a") {
			p |= before
		}
	case f.text[from] == '.', len(rest) > 1 && strings.IndexByte("\"'", rest[0]) >= 0 && strings.IndexByte("}/>\n", rest[1]) >= 0:
		p |= before
	}
	return p
}

// lookAround looks for a value in the places p around the name text[from:to], and stops at the
// first secret.
func (f *finder) lookAround(a assignment, from, to int, p place) {
	found := len(f.spans)
	rest := f.text[to:min(len(f.text), to+nearby)]
	if p&inSentence != 0 && !strings.HasPrefix(rest, " |") {
		f.lookInSentence(a, to, rest)
	}
	if p&inCall != 0 && len(f.spans) == found {
		f.work.spend(perName)
		if upperOrDigit(f.text[to-1]) && strings.HasPrefix(rest, ", ") { // the name of an option
			f.readValue(a, to+2, true, false)
		} else if m := filledIn.FindString(rest); m != "" {
			f.readValue(a, to+len(m)-1, true, false)
		} else if m := columns.FindString(rest); m != "" {
			f.lookInArguments(a, to+len(m), 0)
		} else if m := cases.FindString(rest); m != "" {
			quoted := f.text[max(0, from-nearby):from]
			f.lookInArguments(a, to+len(m), strings.Count(quoted[strings.LastIndexByte(quoted, rest[0])+1:], ","))
		}
	}
	if p&belowName != 0 && len(f.spans) == found {
		f.lookBelow(a, from, to)
	}
	if p&before != 0 && len(f.spans) == found {
		f.lookBefore(a, from)
	}
}

// linkWords are words and signs in a sentence that a value may directly follow.
var linkWords = wordSet("is lautet ist was are be to now still from we it of use used remains equals got it's -> => - – — as")

// lookInSentence looks for a value among the words after a name: the first word, one that follows
// a link word, or one in quotes or brackets.
func (f *finder) lookInSentence(a assignment, to int, rest string) {
	at, link := to, true
	if strings.HasPrefix(rest, "'s ") {
		at += 2
	} else if rest[0] == '`' {
		at++
	}
	for i := range 10 {
		word := f.text[at:min(len(f.text), at+maxValue/8)]
		blank := len(word) - len(strings.TrimLeft(word, " \t"))
		word = word[blank:]
		if end := strings.IndexAny(word, " \t\r\n"); end >= 0 {
			word = word[:end]
		}
		at += blank
		f.work.spend(perRun + len(word) + blank)
		if word == "" || at > to+nearby || strings.ContainsAny(word, "{}=;") && !link {
			return
		}
		begin := strings.TrimLeft(word, "(*_[<")
		sign := strings.IndexByte(begin, '=')
		if begin != "" && (sign <= 0 || sign > len(begin)-3) && (link || begin != word || strings.IndexByte("\"'`", word[0]) >= 0) {
			found := len(f.spans)
			a.prose = i == 0 || !link || strings.IndexByte("\"'`", begin[0]) < 0
			a.env = i > 0 && link && a.name == strong
			f.readValue(a, at+len(word)-len(begin), false, false)
			if len(f.spans) > found {
				return
			}
		}
		bare := strings.Trim(word, ".") // 0 and 7 are password types of Cisco IOS, as in "password 7 VALUE"
		link = bare == "" || linkWords[strings.ToLower(bare)] || strings.HasSuffix(word, ":") || bare == "0" || bare == "7"
		if at += len(word); !link && !hasLetter(word) {
			return
		}
	}
}

// filledIn matches the text between the name of a field and its new value:
// fill("#password", "VALUE"), password.send_keys("VALUE"), expect "password:" ⏎ send "VALUE".
var filledIn = regexp.MustCompile(`^(?:[\]):*?"'\x60]|/i?\b)*(?:` +
	`["'\x60/)]i?\)?,\s?(?:\{?\s?\w+:\s?)*|,\s?(?:\{?\s?(?:with|target|value):\s?)+` +
	`|["'\x60]\swith\s|["'\x60]\)*\.\w+(?:\(|\s=?\s?)` +
	`|["'\x60.)\]{};\s]*(?:\w+[.(])*(?i:send(?:_?keys|line)?|fill|type(?:text)?|(?:set_?)?val(?:ue)?)[( ](?:-- )?` +
	`|(?:\.(?:data|value|text)|["']\))\s[!=]?=\s` +
	`)\\*["'\x60]`)

// columns matches the text between the name of a column and the values of a row.
var columns = regexp.MustCompile(`(?i)^["'\x60]?(?:,\s*["'\x60]?\w+["'\x60]?\s*)*\)\s*values\s*\(`)

// cases matches the text between the last of several names and the values of the first
// case: parametrize("user, password", [("joe", "VALUE"), ...]).
var cases = regexp.MustCompile(`^["'],\s*\[\s*\(`)

var (
	// prompt matches the start of a line whose expression is answered in the next line.
	prompt = regexp.MustCompile(`^(?:.*[$#>%]|\([\w:+]+\)|.*\]:) `)
	// result matches the start of a line with an answer.
	result = regexp.MustCompile(`^(?:\r?\n[ \t]*){1,2}(?:Out\[\d+\]: |=> |\$\d+ = (?:0x[0-9a-f]+ )?|0x[0-9a-f]+: |val \w+: \w+ = )?`)
)

// lookBelow looks for a value that is the whole next line: the answer to a prompt that ends
// with the name, or a value after a sentence that ends with a colon. If there is none, it looks
// for a table below the name.
func (f *finder) lookBelow(a assignment, from, to int) {
	line := strings.IndexByte(f.text[to:], '\n')
	head := f.text[max(0, from-nearby):from]
	head = head[strings.LastIndexByte(head, '\n')+1:]
	f.work.spend((line + len(head)) / 4)
	if f.text[to+max(0, line-1)] != ':' && (!prompt.MatchString(head) || strings.Contains(f.text[to:to+line], "|")) && !strings.HasSuffix(head, `name="`) {
		f.lookInColumn(a, f.separator(from), to, head)
		return
	}
	rest := f.text[to+line : min(len(f.text), to+line+nearby)]
	at := to + line + len(result.FindString(rest))
	rest = f.text[at:min(len(f.text), at+maxValue/8)]
	if end := strings.IndexAny(rest, "\r\n"); end >= 0 {
		rest = rest[:end]
	}
	if n := strings.Count(head, ","); rest != "" && rest[0] == '(' && (n > 0 || strings.Contains(f.text[to:to+line], ",")) { // the answer to "p user, password"
		a.prose = true
		f.lookInArguments(a, at+1, n)
		return
	}
	if value := strings.TrimSpace(rest); value != "" && !strings.ContainsAny(value, " \t") {
		a.line = true
		a.prose = a.prose && strings.IndexByte("\"'", strings.TrimLeft(value, "brf")[0]) < 0
		f.readValue(a, at, false, false)
	}
}

// separator returns the sign between the name of a column and the column before it, or 0
// for the first column.
func (f *finder) separator(from int) byte {
	for from > 0 && f.text[from-1] == ' ' {
		from--
	}
	if from > 0 && strings.IndexByte(",;|\t", f.text[from-1]) >= 0 {
		return f.text[from-1]
	}
	return 0
}

var (
	columnNames = regexp.MustCompile(`^[\w ,;|\t"*]+$`)
	ruleLine    = regexp.MustCompile(`^\n[ |:+-]+\n`) // below the names of columns
)

// maxRows is the maximum number of rows read of a table.
const maxRows = 30

// lookInColumn looks for values in the rows below the names of columns, which sign separates. head
// is the part of the header line before the name that ends at to.
func (f *finder) lookInColumn(a assignment, sign byte, to int, head string) {
	rest := f.text[to:min(len(f.text), to+2*nearby)]
	line := strings.IndexByte(rest, '\n')
	if f.work.spend(perName); sign == 0 || !columnNames.MatchString(head+rest[:line]) {
		return
	}
	header := to - len(head)
	if header != f.table[0] && to <= f.table[1] { // the line is a row of the last table
		return
	}
	f.table[0] = header
	n := strings.Count(head, string(sign))
	columns := strings.Count(rest[:line], string(sign)) + n + 1
	a.quoted = true
	at := to + line + max(1, len(ruleLine.FindString(rest[line:])))
	for range maxRows {
		row, _, _ := strings.Cut(f.text[at:min(len(f.text), at+2*nearby)], "\n")
		parts := strings.Split(row, string(sign))
		if f.work.spend(perRun + len(row)); len(parts) != columns {
			return
		}
		a.value = strings.Trim(parts[n], " \"'`")
		f.takeFor(perValue/4, a, at+len(strings.Join(parts[:n], ","))+min(n, 1)+strings.Index(parts[n], a.value))
		if at += len(row) + 1; at >= len(f.text) {
			return
		}
		f.table[1] = at
	}
}

// precedes matches a value and the text between it and its name.
var precedes = regexp.MustCompile(`(?:` +
	`\bwhere b?["']([^"']{4,})["'] = .*` +
	`|["'\x60]([^"'\x60\s]{4,})["'\x60] (?:[!=]==? |is )[^"'=]*` +
	`|\s["'\x60(]*([^\s"'\x60]{4,}?)["'\x60)]* as (?:\w+ )*` +
	`|(?i:value)["']?\s*[:=]\s*["']([^"']{4,})["'],?\s*["']?(?i:name|key)["']?\s*[:=]\s*["']` +
	`)$`)

// lookBefore looks for a value before its name.
func (f *finder) lookBefore(a assignment, from int) {
	begin := max(0, from-nearby)
	begin += strings.LastIndexByte(f.text[begin:from], '\n') + 1
	head := f.text[begin:from]
	if f.work.spend(len(head) / 4); !strings.ContainsAny(head, "0123456789") || !strings.ContainsAny(head, "\"'`(") && !strings.Contains(head, " as") && !strings.Contains(head, " for") {
		return
	}
	f.work.spend(len(head) * perRead * 2)
	m := precedes.FindStringSubmatchIndex(head)
	for i := 2; i < len(m); i += 2 {
		if m[i] >= 0 {
			a.value, a.quoted = head[m[i]:m[i+1]], true
			f.take(a, begin+m[i])
		}
	}
}
