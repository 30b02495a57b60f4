package redact

import (
	"regexp"
	"strings"
)

// look looks for secrets in the arguments of a call. to is the end of the keyword in its name.
func (c secretCall) look(f *finder, _, to int) {
	if at := opening(f.text, to); at > 0 {
		f.lookInArguments(assignment{name: strong, prose: !c.Sure}, at, c.First)
	}
}

// opening returns where the arguments of a call begin, or the values assigned to its name. It
// returns 0 if the name has neither.
func opening(text string, to int) int {
	end := min(len(text), to+24)
	for to < end && wordAt(text, to) && text[to-1] != '(' {
		to++
	}
	at := to
	for at < end && strings.IndexByte(" \"'=:", text[at]) >= 0 {
		at++
	}
	switch {
	case text[to-1] == '(':
		return to
	case at < end && (text[at] == '(' || text[at] == '[' && at > to):
		return at + 1
	case strings.HasPrefix(text[at:end], "new("):
		return at + 4
	case to+1 < end && text[to] == ' ' && (text[to+1] == '"' || text[to+1] == '\''):
		return to + 1
	}
	return 0
}

var mailAddress = regexp.MustCompile(`^[\w.+-]+@[\w-]+(?:\.[a-z]+)+$`)

// lookInArguments looks at the literals in the list that begins at position at. It skips the items
// before number first, counted from 0.
func (f *finder) lookInArguments(a assignment, at, first int) {
	a.quoted = true
	inBrackets := strings.IndexByte("([", f.text[at-1]) >= 0
	end, n, depth := min(len(f.text), at+2*nearby), 0, 0
	f.work.spend(perRun)
	for i := at; i < end && depth >= 0; i++ {
		switch c := f.text[i]; c {
		case '(', '[':
			depth++
		case '{':
			if before := strings.TrimRight(f.text[at-1:i], " \n"); before != "" && strings.IndexByte("([{,:=", before[len(before)-1]) < 0 { // a block of code
				return
			}
			depth++
		case ')', ']', '}':
			depth--
		case ';':
			return
		case '\n':
			if !inBrackets {
				return
			}
		case ',':
			if depth == 0 {
				n++
			}
		case '"', '\'', '`':
			from := i
			for from > at && f.text[from-1] == '\\' {
				from--
			}
			size := closingQuote(f.text[i+1:end], f.text[from:i+1])
			if size < 0 {
				return
			}
			before := strings.TrimRight(f.text[max(at-1, from-4):from], " \nbrLN@")
			if a.value = f.text[i+1 : i+1+size]; n >= first && !strings.HasSuffix(before, "=") && !strings.HasSuffix(before, ":") && !strings.HasSuffix(before, ">") && !mailAddress.MatchString(a.value) {
				f.take(a, i+1)
			}
			f.work.spend(size + perName)
			i += size + i - from + 1
		}
		f.work.spend(1)
	}
}
