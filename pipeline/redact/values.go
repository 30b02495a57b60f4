package redact

// This file judges values: whether they are generated, chosen by a person, placeholders, or code.

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
	// placeholderWord matches words of values that the reader must replace, and of values such as "none".
	placeholderWord = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:your?|my|change|changeme|changeit|change_?this|replace|replaceme|placeholder|example|dummy|insert|enter|redacted|removed|hidden|masked|todo|fixme|none|null|nil|undefined|true|false|not|empty|optional|required|some|invalid|the|goes|here|description|string)(?:$|[^a-z])`)
	// nameWords matches words that occur in names of secrets. A value made of them is such a name.
	nameWords = regexp.MustCompile(`(?i)pass|secret|token|key|user|name|field|login|auth|cred|header|param|column|test|value|type|config|default`)
	// call matches program text: a call, an index, a field.
	call       = regexp.MustCompile(`^[&*!-]{0,2}[A-Za-z_$][\w.$]*\s*(?:\(|\[|\{|->|::)|^[\[({]|^lambda\b|^function\b|^new\b|^await\b|^not\b|\)\.`)
	dottedName = regexp.MustCompile(`^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$`)
	tensorName = regexp.MustCompile(`^[A-Za-z_]\w*(?:\.[a-z0-9_]{1,16}){2,}$`) // layer4.2.bn3.running_var
	identifier = regexp.MustCompile(`^[A-Za-z_]\w*$`)
	typeName   = regexp.MustCompile(`(?i)^(?:secretstr|secretbytes|(?:u?int|float|str|bytes?|char|varchar|utf|base|sha|md|aes|rsa|hs|rs|es)_?-?\d{1,4}(?:mb\d)?)$`)
	// trailingNumber matches numbers that people append to words, and technical the numbers of encodings and versions.
	trailingNumber = regexp.MustCompile(`\d{3}|\d\d$`)
	technical      = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:sha|md|pbkdf|rfc|aes|utf|iso|base|argon|hs|rs|cve|pep|x|v|version|python|id|uid|gid|obj|tmp)[_-]?\d`)
	numeric        = regexp.MustCompile(`^(?:(?:[0-9A-Fa-f]{2}:){7,}[0-9A-Fa-f]{2}|[\d\s.,:/+-]*|\d{4}-\d\d-\d\d[T ].*|0x[0-9a-fA-F_]+)$`)
)

// fillers are texts that generated values do not contain.
var fillers = []string{"xxxxx", "***", "...", "0000000000", "${", "your-", "your_", "replace-me", "replace_me"}

// isFiller reports whether a value contains a filler or a tag, so that it is not a generated value.
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

// assignment is a value together with the properties of its name and its place.
type assignment struct {
	value  string
	name   strength
	quoted bool
	prose  bool // perhaps a sentence: only words, or nothing, stand between the name and the value
	env    bool // NAME=value without blanks, to the end of the line
	line   bool // the name begins the line, and the value is the rest of it
	shell  bool // name=value between blanks, as in commands and logs
}

// cannotBeSecret excludes most values that are not secrets by a quick test.
func (a assignment) cannotBeSecret() bool {
	v := a.value
	return len(v) < 4 || a.name < strong && len(v) < 8 || a.name < special && (len(v) < 16 || !random(v))
}

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
	if testID.MatchString(v) || addressTemplate.MatchString(v) {
		return false
	}
	if a.prose && dottedName.MatchString(v) && strings.Contains(v, "_") { // "pass them to Rule_L003._process_stack"
		return false
	}
	if a.quoted && (dense(v) || byteLiteral.MatchString(v)) {
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
		return a.name == strong && isPassphrase(v)
	}
	if madeOfWords(v) && placeholderWord.MatchString(v) || nameLike(v, a.name < special) {
		return false
	}
	if a.name < strong && strings.ContainsAny(v, `[](){}|\<>"`) {
		return false
	}
	if a.prose && (len(v) < 6 || a.name == strong && strings.Contains(v, "/")) {
		return false
	}
	if a.prose && !humanChosen(v) && (!hasLetterAndDigit(v) || symbols(v) == 0 && (madeOfWords(v) && (!innerNumber.MatchString(v) || technical.MatchString(v)) || strings.ContainsAny(v, "-_."))) {
		return false
	}
	switch a.name {
	case strong:
		return a.mayBePassword(v)
	case special:
		if strings.HasPrefix(v, "--") {
			return false
		}
		if hasLetterAndDigit(v) && entropy(v) >= 2.5 {
			return !madeOfWords(v) || len(v) >= 16 && (a.quoted || a.env) && !isName(v) || uuid.MatchString(v)
		}
		return len(v) >= 16 && mixed(v) && !madeOfWords(v) && !dottedName.MatchString(v) && entropy(v) >= 3.2 || len(v) >= 12 && symbols(v) >= 2 && !call.MatchString(v)
	default:
		if uuid.MatchString(v) || a.name == loose && allHex(v) {
			return false
		}
		return !madeOfWords(v) || a.env && !isName(v)
	}
}

// nameLike reports whether every part of a value is a word, a number or, if allowHash is true, a
// hash, as in names of headers, fields and cache entries.
func nameLike(v string, allowHash bool) bool {
	if allowHash && tensorName.MatchString(v) {
		return true
	}
	if !strings.ContainsAny(v, "-_.:/") || !allowHash && !nameWords.MatchString(v) {
		return false
	}
	for part := range strings.FieldsFuncSeq(v, func(r rune) bool { return strings.ContainsRune("-_.:/", r) }) {
		switch {
		case !hasLetter(part), allowHash && (allHex(part) && len(part) >= 12 || madeOfWords(part)):
		case allowHash && len(part) <= 12 && lowercaseWord.MatchString(part), len(part) <= 4 && (!hasLetterAndDigit(part) || part[0]|0x20 == 'v'), !hasLetterAndDigit(part) && madeOfWords(part):
		default:
			return false
		}
	}
	return true
}

// alphabet matches the alphabet of an encoding, which is not a value.
var alphabet = regexp.MustCompile(`(?i)^abcdefghijklmn`)

// byteLiteral matches a literal of bytes that are not text.
var byteLiteral = regexp.MustCompile(`^(?:\\x[0-9a-fA-F]{2}){8,}`)

// dense reports whether a value has so many kinds of characters that it must be generated.
func dense(v string) bool {
	return len(v) >= 32 && symbols(v) >= 4 && hasLetterAndDigit(v) && entropy(v) >= 4.4 && strings.Count(v, " ") <= len(v)/20 && !strings.Contains(v, "://") && !alphabet.MatchString(v)
}

// isName reports whether a value made of words is a name as programs use it.
func isName(v string) bool { return strings.ContainsAny(v, "_-. ") && nameWords.MatchString(v) }

// mayBePassword reports whether a person may have chosen the value as a password.
func (a assignment) mayBePassword(v string) bool {
	if uuid.MatchString(v) {
		return true
	}
	if dottedName.MatchString(v) && madeOfWords(v) && !humanChosen(v) && !((a.quoted || a.env) && hasLetterAndDigit(v) && !nameWords.MatchString(v)) || strings.HasPrefix(v, "--") {
		return false
	}
	nSymbols := symbols(v)
	switch {
	case hasLetterAndDigit(v):
		return (len(v) >= 5 || len(v) == 4 && a.quoted) && (!madeOfWords(v) || nSymbols > 0 || !strings.ContainsAny(v, "_-. ") || !nameWords.MatchString(v))
	case nSymbols > 0:
		return len(v) >= 6 && hasLetter(v) && !(nameWords.MatchString(v) && madeOfWords(v)) && !(nSymbols == 1 && strings.ContainsAny(v[len(v)-1:], "!?"))
	}
	return len(v) >= 8 && hasLetter(v) && !madeOfWords(v) && !simpleWord(v) && !strings.ContainsAny(v, "_-. ") || len(v) >= 16 && lowercaseWord.MatchString(v) && !nameWords.MatchString(v) && a.quoted
}

// humanChosen reports whether a value combines words and numbers like a password, and not like a
// name in a program.
func humanChosen(v string) bool {
	return len(v) >= 8 && hasLetterAndDigit(v) && trailingNumber.MatchString(v) && !nameWords.MatchString(v) && !technical.MatchString(v)
}

// innerNumber matches a number within a word, where names seldom have one.
var innerNumber = regexp.MustCompile(`(?i)[a-z]\d+[a-z]`)

var lowercaseWord = regexp.MustCompile(`^[a-z]+$`)

// simpleWord reports whether a value is one word in lower case, perhaps capitalized.
func simpleWord(v string) bool {
	return len(v) < 16 && lowercaseWord.MatchString(strings.ToLower(v[:1])+v[1:])
}

var (
	smallWords    = regexp.MustCompile(`^[a-z0-9 -]+$`)
	wordsAndSigns = regexp.MustCompile(`^[\w !@#$%^*?+-]+$`)
	ofSentence    = regexp.MustCompile(`(?i)\b(?:is|are|a|an|to|of|for|in|on|and|or|if|with|be|must|should|at|than|least|most)\b`)
)

// isPassphrase reports whether a value of several words is a passphrase rather than a sentence.
func isPassphrase(v string) bool {
	if parts := strings.Fields(v); len(parts) >= 4 && len(parts) <= 10 && (smallWords.MatchString(v) || wordsAndSigns.MatchString(v) && hasLetterAndDigit(v)) {
		return !placeholderWord.MatchString(strings.ReplaceAll(v, "the ", "")) && !nameWords.MatchString(v) && !ofSentence.MatchString(v)
	}
	return len(v) <= 40 && strings.Count(v, " ") <= 2 && hasLetterAndDigit(v) && !strings.ContainsAny(v, "{}()<>=,") && (symbols(v) >= 2 || humanChosen(v) && !placeholderWord.MatchString(v) && !numeric.MatchString(v))
}

// fileName matches names of files with a common extension.
var fileName = regexp.MustCompile(`^[\w./-]+\.(?:html?|txt|py|js|json|ya?ml|pem|crt|key|go|md|sh|cfg|conf|ini|toml|xml|csv|log|exe|jks)$`)

// objectKey matches keys of objects in a store, with folders and a file extension.
var objectKey = regexp.MustCompile(`^[\w.=-]+/[\w./=-]*\.[a-z]\w{1,7}$`)

// testID matches the beginning of a test's id in pytest: its file, and its name after two colons.
var testID = regexp.MustCompile(`^[\w./+-]+\.[a-z]\w{0,7}::`)

// addressTemplate matches an e-mail address of which a part is filled in.
var addressTemplate = regexp.MustCompile(`^[\w.{}]*\{\w+\}[\w.{}]*@[\w.-]+$|^[\w.]+@[\w.{}-]*\{\w+\}[\w.{}-]*$`)

func isPath(v string) bool {
	if fileName.MatchString(v) || objectKey.MatchString(v) || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "../") || strings.HasPrefix(v, "~/") || strings.HasPrefix(v, `C:\`) {
		return true
	}
	return strings.HasPrefix(v, "/") && (!random(v) || strings.Count(v, "/") > 3 || madeOfWords(v))
}

// isCode reports whether a value without quotes is program text.
func (a assignment) isCode(v string) bool {
	if a.name == strong && (humanChosen(v) || a.env && hasLetterAndDigit(v) && !nameWords.MatchString(v)) && !call.MatchString(v) {
		return false
	}
	if call.MatchString(v) || dottedName.MatchString(v) && (madeOfWords(v) || !hasLetterAndDigit(v)) || strings.HasSuffix(v, ":") && madeOfWords(v) {
		return true
	}
	return identifier.MatchString(v) && madeOfWords(v) && !a.env && !(a.line && a.name == strong && hasLetterAndDigit(v))
}

func hasLetter(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; 'a' <= c && c <= 'z' {
			return true
		}
	}
	return false
}

func hasLetterAndDigit(s string) bool { return hasLetter(s) && strings.ContainsAny(s, "0123456789") }

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

// random reports whether a value looks like a generated key rather than a name or a path: it has
// letters and digits, and at least 3.2 bits of entropy per character.
func random(s string) bool { return hasLetterAndDigit(s) && entropy(s) >= 3.2 }

// generated reports whether a value, which may be short, looks random and is not made of words.
func generated(s string) bool { return hasLetterAndDigit(s) && entropy(s) >= 2.5 && !madeOfWords(s) }

// madeOfWords reports whether a value is made of words, like a name: words that are separated by
// signs, capitals, or at most two numbers. The parts of generated values are shorter or have too
// few vowels.
func madeOfWords(s string) bool {
	letters, parts, numbers, vowels := 0, 0, 0, 0
	consonants := 0 // letters since the last vowel
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
		lowerCase := 'a' <= c && c <= 'z'
		if letters++; !alnum(before) || before <= '9' || !lowerCase && 'a' <= before && before <= 'z' {
			parts, consonants = parts+1, 0
		} else if lowerCase && i > 1 && upperOrDigit(before) && upperOrDigit(s[i-2]) && s[i-2] > '9' { // RSAKey
			parts, consonants = parts+1, 1
		}
		switch {
		case strings.IndexByte("aeiouyAEIOUY", c) >= 0:
			vowels, consonants = vowels+1, 0
		case lowerCase:
			if consonants++; consonants > 4 {
				return false
			}
		}
	}
	return numbers <= 2 && letters >= 3*parts && vowels*4 >= letters
}
