package redact

// Judges values: generated, chosen by a person, a placeholder, or code.

import (
	"math"
	"regexp"
	"slices"
	"strings"
)

var (
	uuid = regexp.MustCompile(`^[{(]?[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}[)}]?$`)
	// template matches values that are filled in later, and hashes of passwords.
	template = regexp.MustCompile(`^(?:\$\w+|%\w+%|\*+|\.+|&\w+|@\w+@|:\w+)$|\$\{|\$\(|\{\{|<[A-Za-z_/!][^<>]*>|%\(\w+\)|^\{[\w.!:]*\}$|^\$?\{\w|^\$(?:2[abxy]|1|5|6|y|apr1|argon2\w*|pbkdf2[\w-]*|scrypt)\$|^(?:pbkdf2_\w+|bcrypt\w*|scrypt|argon2|sha\d+)[$:]|^\{S?SHA|^(?:SHA(?:1|256|384|512)|MD5):|^\?\w*\}?$|^[x*!]:\d+:|^!(?:vault|Ref|Sub|GetAtt|secret|env)|^(?:env|vault|ssm|secrets?|op|file|arn|data):`)
	verb     = regexp.MustCompile(`%[sdr]\b`)
	// placeholderWord are words of values that someone is to replace, and of what stands for one.
	placeholderWord = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:your?|my|change|changeme|changeit|change_?this|replace|replaceme|placeholder|example|dummy|insert|enter|redacted|removed|hidden|masked|todo|fixme|none|null|nil|undefined|true|false|not|empty|optional|required|some|invalid|the|goes|here|description|string)(?:$|[^a-z])`)
	// nameWords are the words of names of secrets: a value made of them is a name.
	nameWords = regexp.MustCompile(`(?i)pass|secret|token|key|user|name|field|login|auth|cred|header|param|column|test|value|type|config|default`)
	// call is program text: a call, an index, a field of something.
	call     = regexp.MustCompile(`^[&*!-]{0,2}[A-Za-z_$][\w.$]*\s*(?:\(|\[|\{|->|::)|^[\[({]|^lambda\b|^function\b|^new\b|^await\b|^not\b|\)\.`)
	chain    = regexp.MustCompile(`^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$`)
	field    = regexp.MustCompile(`^[A-Za-z_]\w*(?:\.[a-z0-9_]{1,16}){2,}$`) // layer4.2.bn3.running_var
	simple   = regexp.MustCompile(`^[A-Za-z_]\w*$`)
	typeName = regexp.MustCompile(`(?i)^(?:secretstr|secretbytes|(?:u?int|float|str|bytes?|char|varchar|utf|base|sha|md|aes|rsa|hs|rs|es)_?-?\d{1,4}(?:mb\d)?)$`)
	// trailingNumber has the numbers that people add to words, technical those that name an encoding or a version.
	trailingNumber = regexp.MustCompile(`\d{3}|\d\d$`)
	technical      = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:sha|md|pbkdf|rfc|aes|utf|iso|base|argon|hs|rs|cve|pep|x|v|version|python|id|uid|gid|obj|tmp)[_-]?\d`)
	numeric        = regexp.MustCompile(`^(?:(?:[0-9A-Fa-f]{2}:){7,}[0-9A-Fa-f]{2}|[\d\s.,:/+-]*|\d{4}-\d\d-\d\d[T ].*|0x[0-9a-fA-F_]+)$`)
)

// fillers are runs that no generator writes.
var fillers = []string{"xxxxx", "***", "...", "0000000000", "${", "your-", "your_", "replace-me", "replace_me"}

// isFiller reports whether a value contains a filler, so that it is not generated.
func isFiller(s string) bool {
	s = strings.ToLower(s)
	if i := strings.IndexByte(s, '<'); i >= 0 && i+1 < len(s) && 'a' <= s[i+1] && s[i+1] <= 'z' {
		return true
	}
	return slices.ContainsFunc(fillers, func(run string) bool { return strings.Contains(s, run) })
}

// isTemplate reports whether a value is filled in later.
func isTemplate(s string) bool {
	return strings.ContainsAny(s, "$%*.&@:{<!?") && (template.MatchString(s) || verb.MatchString(s) && !generated(s))
}

// allHex reports whether a value consists of hex digits.
func allHex(s string) bool {
	for i := range len(s) {
		if !isHex(s[i]) {
			return false
		}
	}
	return true
}

// hexadecimal reports whether a value may be a hash in hex.
func hexadecimal(s string) bool {
	if !allHex(s) {
		return false
	}
	switch len(s) {
	case 32, 40, 56, 64, 96, 128:
		return true
	}
	return false
}

// assignment is a value with what is known about its name and its place.
type assignment struct {
	value  string
	name   strength
	quoted bool
	prose  bool // it is in a sentence: words or nothing between it and its name
	env    bool // NAME=value, without blanks, to the end of its line
	line   bool // at the beginning of a line and to its end
	shell  bool // name=value between blanks, as in commands and logs
}

// cannotBeSecret excludes most values by a quick test.
func (a assignment) cannotBeSecret() bool {
	v := a.value
	return len(v) < 4 || a.name < strong && len(v) < 8 || a.name < special && (len(v) < 16 || !random(v))
}

// secret reports whether the value is a secret.
func (a assignment) secret() bool {
	v := a.value
	if strings.Contains(v, marker) {
		v = placeholder.ReplaceAllString(v, "")
	}
	a.value = strings.TrimSpace(v)
	if v = a.value; strings.HasPrefix(v, "0x") && hexadecimal(v[2:]) {
		v = v[2:]
	}
	if a.cannotBeSecret() {
		return false
	}
	if a.quoted && (dense(v) || octets.MatchString(v)) {
		return true
	}
	switch {
	case alphabet.MatchString(v):
		return false
	case isTemplate(v), isFiller(v), numeric.MatchString(v), typeName.MatchString(v), strings.Contains(v, "://"), isPath(v):
		return false
	case !a.quoted && a.isCode(v):
		return false
	}
	if strings.ContainsAny(v, " \t") {
		return a.name == strong && phrase(v)
	}
	if words(v) && placeholderWord.MatchString(v) || nameLike(v, a.name < special) {
		return false
	}
	if a.name < strong && strings.ContainsAny(v, `[](){}|\<>"`) {
		return false
	}
	if a.prose && (len(v) < 6 || a.name == strong && strings.Contains(v, "/")) {
		return false
	}
	if a.prose && !human(v) && (!letterDigit(v) || symbols(v) == 0 && (words(v) && (!inner.MatchString(v) || technical.MatchString(v)) || strings.ContainsAny(v, "-_."))) {
		return false
	}
	switch a.name {
	case strong:
		return a.mayBePassword(v)
	case special:
		if strings.HasPrefix(v, "--") {
			return false
		}
		if letterDigit(v) && entropy(v) >= 2.5 {
			return !words(v) || len(v) >= 16 && (a.quoted || a.env) && !isName(v) || uuid.MatchString(v)
		}
		return len(v) >= 16 && mixed(v) && !words(v) && !chain.MatchString(v) && entropy(v) >= 3.2 || len(v) >= 12 && symbols(v) >= 2 && !call.MatchString(v)
	default:
		if uuid.MatchString(v) || a.name == loose && allHex(v) {
			return false
		}
		return !words(v) || a.env && !isName(v)
	}
}

// nameLike reports whether every part of a value is a word, a number or, if it may hold
// one, a hash: names of headers, fields and entries of caches.
func nameLike(v string, hash bool) bool {
	if hash && field.MatchString(v) {
		return true
	}
	if !strings.ContainsAny(v, "-_.:/") || !hash && !nameWords.MatchString(v) {
		return false
	}
	for part := range strings.FieldsFuncSeq(v, func(r rune) bool { return strings.ContainsRune("-_.:/", r) }) {
		switch {
		case !letters(part), hash && (allHex(part) && len(part) >= 12 || words(part)):
		case hash && len(part) <= 12 && plain.MatchString(part), len(part) <= 4 && (!letterDigit(part) || part[0]|0x20 == 'v'), !letterDigit(part) && words(part):
		default:
			return false
		}
	}
	return true
}

// alphabet are the characters of an encoding rather than a value in it.
var alphabet = regexp.MustCompile(`(?i)^abcdefghijklmn`)

// octets is a literal of bytes that are no text.
var octets = regexp.MustCompile(`^(?:\\x[0-9a-fA-F]{2}){8,}`)

// dense reports whether a value has so many kinds of characters that it must be generated.
func dense(v string) bool {
	return len(v) >= 32 && symbols(v) >= 4 && letterDigit(v) && entropy(v) >= 4.4 && strings.Count(v, " ") <= len(v)/20 && !strings.Contains(v, "://") && !alphabet.MatchString(v)
}

// isName reports whether a value made of words is a name of the kind that programs use.
func isName(v string) bool { return strings.ContainsAny(v, "_-. ") && nameWords.MatchString(v) }

// mayBePassword reports whether a person may have chosen the value as a password.
func (a assignment) mayBePassword(v string) bool {
	if uuid.MatchString(v) {
		return true
	}
	if chain.MatchString(v) && words(v) && !human(v) && !((a.quoted || a.env) && letterDigit(v) && !nameWords.MatchString(v)) || strings.HasPrefix(v, "--") {
		return false
	}
	strange := symbols(v)
	switch {
	case letterDigit(v):
		return (len(v) >= 5 || len(v) == 4 && a.quoted) && (!words(v) || strange > 0 || !strings.ContainsAny(v, "_-. ") || !nameWords.MatchString(v))
	case strange > 0:
		return len(v) >= 6 && letters(v) && !(nameWords.MatchString(v) && words(v)) && !(strange == 1 && strings.ContainsAny(v[len(v)-1:], "!?"))
	}
	return len(v) >= 8 && letters(v) && !words(v) && !simpleWord(v) && !strings.ContainsAny(v, "_-. ") || len(v) >= 16 && plain.MatchString(v) && !nameWords.MatchString(v) && a.quoted
}

// human reports whether a value is made of words and numbers as passwords are, and not as names in programs.
func human(v string) bool {
	return len(v) >= 8 && letterDigit(v) && trailingNumber.MatchString(v) && !nameWords.MatchString(v) && !technical.MatchString(v)
}

// inner has a number within a word, where names seldom have one.
var inner = regexp.MustCompile(`(?i)[a-z]\d+[a-z]`)

var plain = regexp.MustCompile(`^[a-z]+$`)

// simpleWord reports whether a value is one word of small letters, perhaps with a capital first.
func simpleWord(v string) bool { return len(v) < 16 && plain.MatchString(strings.ToLower(v[:1])+v[1:]) }

var (
	smallWords    = regexp.MustCompile(`^[a-z0-9 -]+$`)
	wordsAndSigns = regexp.MustCompile(`^[\w !@#$%^*?+-]+$`)
	ofSentence    = regexp.MustCompile(`(?i)\b(?:is|are|a|an|to|of|for|in|on|and|or|if|with|be|must|should|at|than|least|most)\b`)
)

// phrase reports whether a value of several words is a pass phrase rather than a sentence.
func phrase(v string) bool {
	if parts := strings.Fields(v); len(parts) >= 4 && len(parts) <= 10 && (smallWords.MatchString(v) || wordsAndSigns.MatchString(v) && letterDigit(v)) {
		return !placeholderWord.MatchString(strings.ReplaceAll(v, "the ", "")) && !nameWords.MatchString(v) && !ofSentence.MatchString(v)
	}
	return len(v) <= 40 && strings.Count(v, " ") <= 2 && letterDigit(v) && !strings.ContainsAny(v, "{}()<>=,") && (symbols(v) >= 2 || human(v) && !placeholderWord.MatchString(v) && !numeric.MatchString(v))
}

// fileName are names of files, which end in what they are.
var fileName = regexp.MustCompile(`^[\w./-]+\.(?:html?|txt|py|js|json|ya?ml|pem|crt|key|go|md|sh|cfg|conf|ini|toml|xml|csv|log|exe|jks)$`)

// object is the name of an object in a store, with folders and the ending of a file.
var object = regexp.MustCompile(`^[\w.=-]+/[\w./=-]*\.[a-z]\w{1,7}$`)

func isPath(v string) bool {
	if fileName.MatchString(v) || object.MatchString(v) || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "../") || strings.HasPrefix(v, "~/") || strings.HasPrefix(v, `C:\`) {
		return true
	}
	return strings.HasPrefix(v, "/") && (!random(v) || strings.Count(v, "/") > 3 || words(v))
}

// isCode reports whether a value without quotes is program text.
func (a assignment) isCode(v string) bool {
	if a.name == strong && (human(v) || a.env && letterDigit(v) && !nameWords.MatchString(v)) && !call.MatchString(v) {
		return false
	}
	if call.MatchString(v) || chain.MatchString(v) && (words(v) || !letterDigit(v)) || strings.HasSuffix(v, ":") && words(v) {
		return true
	}
	return simple.MatchString(v) && words(v) && !a.env && !(a.line && a.name == strong && letterDigit(v))
}

func letters(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; 'a' <= c && c <= 'z' {
			return true
		}
	}
	return false
}

func letterDigit(s string) bool { return letters(s) && strings.ContainsAny(s, "0123456789") }

// symbols counts the characters that are common in passwords but not in names.
func symbols(s string) (n int) {
	for i := range len(s) {
		if strings.IndexByte("!@#$%^&*?+=~|,;<>", s[i]) >= 0 {
			n++
		}
	}
	return n
}

// entropy returns the entropy of a value in bits per character.
func entropy(s string) (sum float64) {
	var counts [256]int
	for i := range len(s) {
		counts[s[i]]++
	}
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}

// random reports whether a value looks like a generated key rather than a name
// or a path: letters and digits, at least 3.2 bits per character.
func random(s string) bool { return letterDigit(s) && entropy(s) >= 3.2 }

// generated reports whether a value, which may be short, is random and not made of words.
func generated(s string) bool { return letterDigit(s) && entropy(s) >= 2.5 && !words(s) }

// words reports whether a value is made of words, like names: separated by signs, by
// capitals, and by at most two numbers. The parts of generated values are shorter or
// cannot be pronounced.
func words(s string) bool {
	letters, parts, numbers, vowels := 0, 0, 0, 0
	hard := 0 // letters since the last vowel
	for i := range len(s) {
		c, before := s[i], byte(0)
		if i > 0 {
			before = s[i-1]
		}
		if '0' <= c && c <= '9' {
			if before < '0' || before > '9' {
				numbers++
			}
			continue
		}
		if !alnum(c) {
			continue
		}
		small := 'a' <= c && c <= 'z'
		if letters++; !alnum(before) || before <= '9' || !small && 'a' <= before && before <= 'z' {
			parts, hard = parts+1, 0
		} else if small && i > 1 && capital(before) && capital(s[i-2]) && s[i-2] > '9' { // RSAKey
			parts, hard = parts+1, 1
		}
		switch {
		case strings.IndexByte("aeiouyAEIOUY", c) >= 0:
			vowels, hard = vowels+1, 0
		case small:
			if hard++; hard > 4 {
				return false
			}
		}
	}
	return numbers <= 2 && letters >= 3*parts && vowels*4 >= letters
}
