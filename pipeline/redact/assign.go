package redact

// Values assigned to the name of a secret, in programs, settings, command lines, headers
// and printed values.

import (
	"regexp"
	"strings"
)

// optionalQuote matches a quote, which may be escaped, or nothing.
const optionalQuote = "(?:\\\\*[\"'`])?"

// Signs between a name and its value. Each constant is the number of a group in gap.
const (
	apart     = 2 + iota // name and value are two fields: name: DB_PASSWORD, value: ...
	annotated            // a type annotation and =
	fallback             // the value that replaces an unset variable
	element              // XML
	typed                // a Go type and =
	assigned             // =, :=, == and other operators
	mapping              // :
	comma                // of a tuple or a call
	bar                  // of a table
	setter               // the parenthesis of a call
)

// gap matches the text between a name and its value. Group 1 is the closing quote of the name. The
// other groups are the signs above, of which one matches.
var gap = regexp.MustCompile(`^(` + quote + `)?(?:\s?\[?\d*\])?[*_]{0,2}\s*(?:` +
	`(\s+value=|[,;]?\s*(?:` + optionalQuote + `\w+` + optionalQuote + `\s*:\s*` + optionalQuote + `\w*` + optionalQuote + `,?\s*)?` + optionalQuote + `\w*[vV]alue` + optionalQuote + `\s*[:=]|\{\s*(?:\w+\s*=\s*[^\n]*\s+)*(?:default|value)\s*=)` + // name and value apart
	`|(:\s?[A-Za-z_&][\w.\[\]|, '"&]*?\s?=)\s?(?:[bBrRuUfF]{0,2}|[\w:.]+\((?:default\s?=\s?)?)\\*["'\x60]` + // annotation
	`|(\)?\s*(?:\|\|=?|\?\?=?|\?:|or\s|:-)|\)\.(?:unwrap_or|orElse|getOrElse)\(|,\s*default\s*=)` + // what stands for a variable that is not set
	`|(</\w+>\s*<\w+>|(?:\w[\w:-]*="[^"<>\n]*"\s*)*/?>(?:\s*<[vV]alue>)?)` + // XML
	`|([A-Za-z*&]\w*\s?=)` + // Go: var password string = ...
	`|(:=|\(\)->|\)\s=\s|\{[a-z; ]+\} =|={1,3}>?|!=|\?=|\|\|=|%3D|%3A|&#61;|\\u003[dD]|\\x3d|=>|<-)` + // assignment
	`|(:)` + // mapping
	`|(,)` + // tuple, call
	`|(\|)` + // table
	`|(\()` + // setter
	`)[*_]{0,2}[ \t]*(?:[|>][+-]?)?(?:\\?\r?\n[ \t]*)?`)

// blanks matches the text between a name and its value if no sign separates them.
var blanks = regexp.MustCompile(`^` + quote + `?[ \t]{1,8}(?:/t \w+ )?(?:/d |--?(?:body|value|data|secret-string|[bv])[ =])?|^` + quote + `,?\s{1,12}`)

// lookName looks for the value of the name that contains the word text[from:to].
func lookName(f *finder, from, to int) {
	from, to = nameBounds(f.text, from, to)
	if to <= f.nameEnd {
		return
	}
	f.nameEnd = to
	f.work.spend(perRun)
	flag := from > 0 && f.text[from:min(from+1, to)] == "-"
	rest := f.text[to:min(len(f.text), to+maxGap)]
	sign := flag || mayHaveValue(rest, f.afterSetCommand(from)) || strings.HasPrefix(rest, "\t") && f.atLineStart(from)
	around := f.possiblePlaces(from, rest)
	if !sign && around == 0 { // most names in programs have no value next to them
		return
	}
	s := f.strength(from, to)
	if flag && (s == loose || s == bare) {
		s = special
	}
	if s == none {
		return
	}
	f.work.spend(perName)
	found := len(f.spans)
	if sign && rest != "" && f.lookAfter(from, to, s, flag) || f.text[from:to] == "pass" && !strings.HasPrefix(rest, " phrase ") {
		around &^= inSentence
	}
	if s == loose { // names such as "key" are too common for a value that far away
		around &^= belowName
	}
	if len(f.spans) == found && around != 0 {
		f.lookAround(assignment{name: s, prose: true}, from, to, around)
	}
}

// lookAfter looks for a value after the name text[from:to], separated from it by a sign or a
// blank. It returns true if what follows is not a sentence: an assignment, or the rest of a longer
// name.
func (f *finder) lookAfter(from, to int, s strength, flag bool) bool {
	rest := f.text[to:min(len(f.text), to+maxGap)]
	if from > 0 && f.text[from-1] == ':' && rest[0] == ':' && !strings.HasPrefix(rest, ": ") { // a longer name, such as an ARN: aws:secret:NAME
		return true
	}
	m := gap.FindStringSubmatchIndex(rest)
	sign := 0
	for i := 2; m != nil && i < len(m)/2; i++ {
		if m[2*i] >= 0 {
			sign = i
		}
	}
	inQuotes := m != nil && m[2] >= 0
	a := assignment{name: s}
	switch {
	case sign == 0 || sign == comma && !inQuotes && !flag || sign == typed && inQuotes:
		if at := f.valueAfterBlank(from, to, flag); at > 0 {
			f.readValue(a, at, false, true)
		}
	case sign == mapping && f.text[from:to] == "PASS": // the result of a test
	case sign == element || sign == bar:
		f.lookInCell(a, from, to+m[1], sign)
	case sign == comma && !flag && !f.firstInList(from), sign == setter && (!maySet(f.text[from:to]) || strings.Contains(rest[:m[1]], "\n")):
	default:
		at := to + m[1]
		if sign == annotated { // the match of gap includes the start of the value
			at = to + m[2*sign+1]
			at += len(f.text[at:]) - len(strings.TrimLeft(f.text[at:], " "))
		}
		tight := sign == assigned && m[1] == m[2*sign+1]
		a.line = sign != fallback && f.atLineStart(from) || sign == mapping && from > 0 && f.text[from-1] == ' '
		a.env = tight && m[2*sign] == 0 && (a.line || upperOrDigit(f.text[to-1]))
		a.shell = tight && !inQuotes && (f.inCommand(from) || a.line && upperOrDigit(f.text[to-1])) || sign == fallback && from > 0 && f.text[from-1] == '{'
		isLastOfSeveral := sign == assigned && strings.HasSuffix(strings.TrimRight(f.text[max(0, from-3):from], " "), ",") // user, password = ...
		if isLastOfSeveral && strings.HasPrefix(f.text[at:], "(") {
			head := f.text[max(0, from-nearby):from]
			f.lookInArguments(a, at+1, strings.Count(head[strings.LastIndexByte(head, '\n')+1:], ","))
			break
		}
		if f.readValue(a, at, sign == setter || sign == comma, flag); isLastOfSeveral {
			f.lookInArguments(a, at, 1)
		} else if sign == assigned {
			f.lookInPairs(at)
		}
	}
	return sign == annotated || sign == assigned || sign == typed
}

var (
	list = regexp.MustCompile(`^[\[({]\s*[\[(]`)
	pair = regexp.MustCompile(`[\[(]\s*["'][^"'\n]*["'],\s*["']([^"'\n]{4,})["']\s*[\])]`)
)

// lookInPairs looks at the second parts of a list of pairs: [("joe", "VALUE"), ...].
func (f *finder) lookInPairs(at int) {
	rest := f.text[at:min(len(f.text), at+window)]
	if !list.MatchString(rest) {
		return
	}
	f.work.spend(len(rest) * perRead)
	for _, m := range pair.FindAllStringSubmatchIndex(rest, -1) {
		f.take(assignment{value: rest[m[2]:m[3]], name: strong, quoted: true}, at+m[2])
	}
}

// lookInCell looks at the content of an XML element or of a table cell.
func (f *finder) lookInCell(a assignment, from, at, sign int) {
	stop, end := "|\n", min(len(f.text), at+window)
	if sign == element {
		if from == 0 || strings.IndexByte("<:>\"'", f.text[from-1]) < 0 || f.text[from-1] == '>' && f.text[at-1] != '>' {
			return
		}
		stop = "<"
	}
	if n := strings.IndexAny(f.text[at:end], stop); n > 0 {
		if before := strings.TrimRight(f.text[max(0, from-8):from], " `*_"); sign == bar && before != "" && strings.IndexByte("|\n", before[len(before)-1]) < 0 { // a pipe
			return
		}
		a.value, a.quoted = strings.Trim(f.text[at:at+n], " `*"), true
		f.take(a, at+strings.Index(f.text[at:], a.value))
	}
}

// inCommand reports whether a name follows a blank or a separator, as in commands and logs, and is
// not in a list of arguments.
func (f *finder) inCommand(from int) bool {
	return from > 0 && strings.IndexByte(" =;?&\t", f.text[from-1]) >= 0 && !strings.HasSuffix(strings.TrimRight(f.text[max(0, from-8):from], " "), ",")
}

// firstInList reports whether a quoted name is the first item of a list or the first argument of a
// call. Only then can the next item be its value.
func (f *finder) firstInList(from int) bool {
	before := strings.TrimRight(f.text[max(0, from-24):from], "\\\"' \t\nbru")
	return before != "" && strings.IndexByte("([{", before[len(before)-1]) >= 0
}

// maySet reports whether the argument of a function with the given name may be a secret, as in
// set_password("VALUE") and Password("VALUE"), but not in check_password("VALUE").
func maySet(name string) bool {
	name = strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	return strings.HasPrefix(name, "set") || strings.HasPrefix(name, "with") || strings.HasPrefix(name, "add") || !strings.ContainsAny(name, "_-") && !strings.HasSuffix(name, "pass")
}

// valueAfterBlank returns where a value begins that only a blank separates from its name: after a
// flag, in a command that sets a variable, in a Dockerfile, in a table, or after "is" in a
// sentence. It returns 0 if there is no such value.
func (f *finder) valueAfterBlank(from, to int, flag bool) int {
	text := f.text
	rest := text[to:min(len(text), to+maxGap)]
	if flag || f.afterSetCommand(from) {
		return to + len(blanks.FindString(rest))
	}
	if strings.HasPrefix(rest, "\t") && f.atLineStart(from) { // a table of names and values
		return to + 1
	}
	for _, is := range [...]string{" is ", " was "} {
		if strings.HasPrefix(rest, is) {
			return to + len(is)
		}
	}
	return 0
}

// setCommand matches the words of a command that sets a variable, before the variable's name.
var setCommand = regexp.MustCompile(`(?:^|[\s-])(?:ENV|ARG|SET|/v|setx|setenv|set -\w+|#define|(?:secrets?|config|configure|env|vars?|variables?|credentials?|settings?|kv)[: ](?:set|add|put)(?: --?\w+)*|config(?: --?\w+)+)\s+$`)

// afterSetCommand reports whether a command that sets a variable precedes the name at from.
func (f *finder) afterSetCommand(from int) bool {
	for least := max(1, from-maxGap/2); from > least && f.text[from-1] > ' '; from-- {
	}
	if from < 4 || f.text[from-1] != ' ' {
		return false
	}
	before := f.text[max(0, from-40):from]
	word := before[strings.LastIndexByte(before[:len(before)-1], ' ')+1 : len(before)-1]
	if !setCommandEnds[strings.ToLower(word[strings.LastIndexAny(word, ":\n")+1:])] && !strings.HasPrefix(word, "-") {
		return false
	}
	f.work.spend(perName)
	return setCommand.MatchString(before)
}

// setCommandEnds holds the last words of the matches of setCommand, for a quick test.
var setCommandEnds = wordSet("env arg set /v setx setenv add put #define")

// mayHaveValue reports, by a quick test, whether a sign or a value may follow a name. rest is the
// text after the name.
func mayHaveValue(rest string, setBefore bool) bool {
	for i := range len(rest) {
		switch c := rest[i]; {
		case strings.IndexByte(" \t\"'`\\[]*_", c) >= 0:
			continue
		case c == ')':
			after := strings.TrimLeft(rest[i+1:], " ")
			return strings.HasPrefix(after, "= (") || strings.HasPrefix(after, "or ") || strings.HasPrefix(after, "||") || strings.HasPrefix(after, "?") || strings.HasPrefix(after, ".unwrap_or(") || strings.HasPrefix(after, ".orElse(") || strings.HasPrefix(after, ".getOrElse(")
		case strings.IndexByte("=:>%&!?|", c) >= 0:
			return true
		case c == ',':
			return i > 0
		case c == '(':
			return strings.HasPrefix(rest[i:], "()->") || i+2 < len(rest) && strings.IndexByte("\"'`\\b", rest[i+1]) >= 0
		case c == '\n':
			return strings.Contains(rest, "alue")
		case i > 0 && alnum(c):
			head := rest[i:min(len(rest), i+24)]
			return strings.IndexByte(head, '=') > 0 || strings.HasPrefix(head, "is ") || strings.HasPrefix(head, "was ") || strings.HasPrefix(head, "or ") || setBefore
		case c == '{' || c == '/':
			return i > 0 || c == '/'
		default:
			return i > 0 && c == '-' || c == '<'
		}
	}
	return false
}

// atLineStart reports whether the name at from is the first of its line, perhaps after "export".
func (f *finder) atLineStart(from int) bool {
	before := f.text[max(0, from-12):from]
	before = strings.TrimSuffix(strings.TrimSuffix(before, "export "), "ENV ")
	before = strings.TrimRight(before, "+- ")
	return before == "" && from < 12 || strings.HasSuffix(before, "\n") || strings.HasSuffix(before, `\n`)
}

var address = regexp.MustCompile(`^://([^\s:@/"'<>]*)(?::([^\s/"'<>]+))?@[\w\[.%{-]`)

// lookAddress looks for a password in a URL, at its "://".
func lookAddress(f *finder, from, to int) {
	end := min(len(f.text), from+window)
	if to == end || strings.IndexByte(f.text[to:end], '@') < 0 {
		return
	}
	f.work.spend(perName + perRead*strings.IndexByte(f.text[to:end], '@'))
	m := address.FindStringSubmatchIndex(f.text[from:end])
	if m == nil {
		return
	}
	if m[4] < 0 { // only a user name, which may be a token
		if user := f.text[from+m[2] : from+m[3]]; len(user) >= 20 && generated(user) && !isFiller(user) {
			f.add(span{from: from + m[2], to: from + m[3], kind: "url_password", rank: 1})
		}
		return
	}
	value := placeholder.ReplaceAllString(f.text[from+m[4]:from+m[5]], "")
	if user := f.text[from+m[2] : from+m[3]]; strings.EqualFold(user, value) {
		return
	}
	a := assignment{value: value, quoted: true, name: strong}
	if a.secret() || len(value) >= 20 && !template.MatchString(value) && hasLetterAndDigit(value) && !isFiller(value) {
		f.add(span{from: from + m[4], to: from + m[5], kind: "url_password", rank: 1})
	}
}

// lookAt looks for the password of an address without a scheme, at its "@": joe:VALUE@host.
func lookAt(f *finder, from, to int) {
	begin := from
	for least := max(0, from-maxName); begin > least && f.text[begin-1] > ' ' && strings.IndexByte("\"'`<>(),;=", f.text[begin-1]) < 0; begin-- {
	}
	f.work.spend(from - begin + 1)
	user, value, ok := strings.Cut(f.text[begin:from], ":")
	if !ok || user == "" || strings.ContainsAny(value, "/@:\\") || user == "mailto" || !alnum(user[0]) || user[0] <= '9' || len(value) < 4 {
		return
	}
	host := f.text[to:min(len(f.text), to+nearby)]
	if end := strings.IndexFunc(host, func(r rune) bool { return r != '.' && r != '-' && (r > 'z' || !alnum(byte(r))) }); end >= 0 {
		if port := host[end] == ':' && end+1 < len(host) && '0' <= host[end+1] && host[end+1] <= '9'; !port && host[end] != '/' && strings.Contains(host[:end], ".") && hasLetter(host[:end]) {
			return
		}
		host = host[:end]
	}
	if host != "" && host != "sha256" {
		f.take(assignment{value: value, name: strong, quoted: true, prose: true}, from-len(value))
	}
}

var (
	bearer = regexp.MustCompile(`(?i)^bearer(?:[ \t]|%20|\+|\\u0020)+(?:token=)?([A-Za-z0-9._~+/=|-]{12,})`)
	basic  = regexp.MustCompile(`(?i)^basic(?:[ \t]|%20|\+)+([A-Za-z0-9+/_-]{8,}={0,2})`)
)

// lookBearer looks for the token of an HTTP header: Bearer VALUE.
func lookBearer(f *finder, from, to int) {
	f.work.spend(perRun * 2)
	if m := bearer.FindStringSubmatchIndex(f.text[from:min(len(f.text), from+maxValue)]); m != nil {
		f.work.spend(m[1] * perRead)
		if v := f.text[from+m[2] : from+m[3]]; !isFiller(v) && hasLetterAndDigit(v) && entropy(v) >= 2.8 && !madeOfWords(v) {
			f.add(span{from: from + m[2], to: from + m[3], kind: "bearer", rank: 1})
		}
	}
}

// lookBasic looks for the encoded user and password of an HTTP header: Basic VALUE.
func lookBasic(f *finder, from, to int) {
	f.work.spend(perRun * 2)
	if m := basic.FindStringSubmatchIndex(f.text[from:min(len(f.text), from+maxValue)]); m != nil {
		f.work.spend(m[1] * perRead)
		if text := decodeText(f.text[from+m[2] : from+m[3]]); strings.Contains(text, ":") {
			f.add(span{from: from + m[2], to: from + m[3], kind: "basic_auth", rank: 1})
		}
	}
}

// strength returns the strength of the name text[from:to]. If the name alone is weak, the word
// before it is included: "api key".
func (f *finder) strength(from, to int) strength {
	s := nameStrength(f.text[from:to])
	if s == loose || s == bare {
		if from > 0 && (f.text[from-1] == '?' || f.text[from-1] == '&') { // a parameter of a URL
			return special
		}
		begin := from - 1
		for begin > 0 && alnum(f.text[begin-1]) && from-begin < maxName/4 {
			begin--
		}
		if begin > 0 && begin < from-1 && f.text[from-1] == ' ' {
			return nameStrength(f.text[begin:from-1] + "_" + f.text[from:to])
		}
	}
	return s
}
