package redact

// Reads values: finds where they begin and end.

import (
	"regexp"
	"strings"
)

const (
	maxGap   = 160  // bytes between a name and its value
	maxValue = 4096 // bytes of a value in quotes
	nearby   = 100  // bytes around a name that are searched
)

// quote matches a quote, plain, escaped (once or more), or encoded for HTML, URLs or JSON.
const quote = "(?:\\\\*[\"'`]|&quot;|&#(?:34|39);|%2[27]|\\\\u002[27])"

// lead matches what may precede a quoted value, such as a call that only wraps it or the prefix of
// a string literal, and the opening quote, which is group 1.
var lead = regexp.MustCompile(`^(?:(?:SecretStr|Secret|str|bytes|bytes\.fromhex|bytearray\.fromhex|(?:binascii\.)?unhexlify|Field|String|b64decode|quote|\[\]byte|String::from|Buffer\.from|(?:base64\.)?b64decode|SecureString)\(|[\w.]*\((?:["']\w*["'],\s?)?default\s?=\s?|\(\s*|0x[0-9a-f]+ )?(?:[bBrRuUfF]{1,2}|[@$LN]{1,2})?(\\*"""|\\*'''|` + quote + `)`)

var (
	scheme  = regexp.MustCompile(`(?i)^(?:basic|bearer|ssws|bot|splunk|token|apikey|api-key|key|digest|aws4-hmac-sha256|negotiate)[ \t]+(?:token=)?`)
	comment = regexp.MustCompile(`[ \t]+(?:#|//)[^\n]*$`)
)

// readValue reads the value at text[at:] and keeps it if it is a secret. If onlyQuoted is true, it
// ignores values without quotes. flag says whether the name is a command-line flag.
func (f *finder) readValue(a assignment, at int, onlyQuoted, flag bool) {
	text := f.text
	if m := scheme.FindString(text[at:min(len(text), at+40)]); m != "" {
		at += len(m)
	}
	if m := lead.FindStringSubmatchIndex(text[at:min(len(text), at+40)]); m != nil {
		f.readLiteral(a, at+m[1], text[at+m[2]:at+m[3]])
	} else if !onlyQuoted {
		f.readUnquoted(a, at, flag)
	}
}

// readLiteral reads a value in quotes q.
func (f *finder) readLiteral(a assignment, at int, q string) {
	rest := f.text[at:min(len(f.text), at+maxValue)]
	end := closingQuote(rest, q)
	if end < 0 && rest != "" && strings.IndexByte("+,)", rest[0]) >= 0 { // the quote closes an earlier literal
		return
	}
	if end < 0 { // the text is cut off
		if end = strings.IndexAny(rest, "\r\n"); end < 0 {
			end = len(rest)
		}
	}
	f.work.spend(perRun + end/4)
	for end > 2 && rest[end-2] == '\\' && strings.IndexByte("nr", rest[end-1]) >= 0 { // exclude the escaped end of a line
		end -= 2
	}
	a.value, a.quoted, a.env = rest[:end], true, false
	if m := scheme.FindString(a.value); m != "" {
		a.value, at = a.value[len(m):], at+len(m)
	}
	f.take(a, at)
	f.readAdjacent(a, at+len(a.value), q)
}

// maxParts is the maximum number of consecutive literals that are read as one value.
const maxParts = 8

// readAdjacent reads the literals in the lines after one, which a compiler would join to it.
func (f *finder) readAdjacent(a assignment, at int, q string) {
	for range maxParts {
		if !strings.HasPrefix(f.text[at:], q+"\n") {
			return
		}
		rest := f.text[at+len(q) : min(len(f.text), at+len(q)+nearby)]
		next := strings.TrimLeft(rest, " \t\n")
		f.work.spend(perRun + len(rest) - len(next))
		if !strings.HasPrefix(next, q) || strings.HasPrefix(next, q+q) {
			return
		}
		at += len(q) + len(rest) - len(next) + len(q)
		size := closingQuote(f.text[at:min(len(f.text), at+maxValue)], q)
		if size < 0 {
			return
		}
		a.value = f.text[at : at+size]
		f.take(a, at)
		at += size
	}
}

// readUnquoted reads a value without quotes: the rest of its line if that may be one value, or else
// the text up to a blank or a separator.
func (f *finder) readUnquoted(a assignment, at int, flag bool) {
	rest := f.text[at:min(len(f.text), at+maxValue/8)]
	if end := strings.IndexAny(rest, "\r\n"); end >= 0 {
		rest = rest[:end]
	}
	if end := strings.Index(rest, `\n`); end >= 0 {
		rest = rest[:end]
	}
	f.work.spend(perRun + len(rest)/2)
	if line := f.wholeLine(rest); (a.env || a.line) && !flag && line != "" {
		a.value = line
		f.take(a, at)
		return
	}
	end := strings.IndexAny(rest, " \t\"'`,;)}]<>|\\")
	if end < 0 {
		end = len(rest)
	}
	if amp := strings.IndexByte(rest[:end], '&'); amp >= 0 && strings.Contains(rest[amp:end], "=") {
		end = amp
	}
	a.value = strings.TrimRight(rest[:end], ".:")
	if a.line = a.line && end == len(rest); flag && end > 0 {
		a.env = true
	}
	if a.shell = a.shell && (end == len(rest) || strings.IndexByte(" \t;&\"'`}", rest[end]) >= 0); a.shell {
		a.env = true
	}
	f.take(a, at)
}

// wholeLine returns a line without its comment if it may be a single value. It returns "" if the
// line is more than that, or code.
func (f *finder) wholeLine(line string) string {
	if strings.Contains(line, " #") || strings.Contains(line, "//") {
		f.work.spend(len(line) * perRead)
		line = comment.ReplaceAllString(line, "")
	}
	line = strings.TrimRight(line, " \t")
	switch {
	case line == "", strings.ContainsAny(line, " \t\"'`"), strings.IndexByte(",;)", line[len(line)-1]) >= 0:
		return ""
	case strings.ContainsAny(line, "(){}[];") && (call.MatchString(line) || dottedName.MatchString(line)):
		return ""
	}
	return line
}

// closingQuote returns the position of the closing quote of a literal with the opening quote q. It
// returns -1 if the line has none.
func closingQuote(rest, q string) int {
	long := len(q) > 2 && strings.HasSuffix(q, q[len(q)-1:]+q[len(q)-1:])
	slashes := strings.Count(q, `\`)
	for i := 0; i < len(rest); {
		n := strings.Index(rest[i:], q[slashes:])
		if n < 0 {
			return -1
		}
		at, have := i+n, 0
		if !long && strings.ContainsAny(rest[i:at], "\n") {
			return -1
		}
		for at-have > 0 && rest[at-have-1] == '\\' {
			have++
		}
		if have <= slashes || have%2 == 0 && slashes == 0 {
			return at - min(have, slashes)
		}
		i = at + len(q) - slashes
	}
	return -1
}

// take adds the value to the spans if it is a secret. at is its position in the text.
func (f *finder) take(a assignment, at int) { f.takeFor(perValue, a, at) }

// takeFor is like take, but charges the given amount of work for judging the value.
func (f *finder) takeFor(work int, a assignment, at int) {
	f.work.spend(len(a.value))
	trimmed := strings.TrimSpace(a.value)
	at += strings.Index(a.value, trimmed)
	a.value = trimmed
	if a.cannotBeSecret() {
		return
	}
	if f.work.spend(work + len(a.value)*perRead); a.secret() {
		f.add(span{from: at, to: at + len(a.value), kind: "assigned", learn: learnable(a.value)})
	}
}
