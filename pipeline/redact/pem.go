package redact

// Private keys in PEM (RFC 7468) and in OpenPGP's ASCII armor (RFC 4880), complete or cut off, and
// the secret access keys of AWS.

import (
	"regexp"
	"strings"
)

// Patterns for the parts of a private key, plain or escaped for a URL.
const (
	pemSpace = `(?: |%20|\+)`
	pemLabel = `(?:[A-Z0-9]+` + pemSpace + `)*PRIVATE` + pemSpace + `KEY(?:` + pemSpace + `BLOCK)?-----`
	pemByte  = `(?:[A-Za-z0-9+/=]|%2[BbFf]|%3[Dd])`
	pemSep   = `(?:[\s"',+|>\\]|%0[AaDd])` // line ends, and the characters that quoting puts around them
)

var (
	pemBegin = regexp.MustCompile(`^-----BEGIN` + pemSpace + pemLabel)
	pemEnd   = regexp.MustCompile(`^-----END` + pemSpace + pemLabel)
	// pemBody is the text of a key that was cut off: headers and lines of base64.
	pemBody = regexp.MustCompile(`^(?:` + pemSep + `*(?:[A-Z][A-Za-z-]+: [^\n\\]+|` + pemByte + `{16,}))+(?:` + pemSep + `*` + pemByte + `+)?`)
	// pemRest is the tail of a key whose beginning was cut off.
	pemRest = regexp.MustCompile(`(?:` + pemByte + `{16,}` + pemSep + `+)+(?:` + pemByte + `+` + pemSep + `*)?n?$`)
)

// lookKeyBegin looks for a private key whose BEGIN line is at from. A BEGIN line alone, as
// in a program that reads keys, is not a key.
func lookKeyBegin(f *finder, from, _ int) {
	f.work.spend(perRun * 4)
	head := pemBegin.FindString(f.text[from:min(len(f.text), from+160)])
	if head == "" {
		return
	}
	f.work.spend(perName)
	body := from + len(head)
	rest := f.text[body:min(len(f.text), body+maxWindow)]
	for at := 0; ; {
		n := strings.Index(rest[at:], "-----END")
		if n < 0 {
			break
		}
		at += n
		f.work.spend(perName + at/4)
		if end := pemEnd.FindString(rest[at:min(len(rest), at+160)]); end != "" {
			if !strings.ContainsAny(rest[:at], "(){}_;") {
				f.add(span{from: from, to: body + at + len(end), kind: privateKey, rank: 100})
				return
			}
			break
		}
		at++
	}
	m := pemBody.FindString(rest)
	f.work.spend(len(m) * perRead * 2)
	if m != "" {
		f.add(span{from: from, to: body + len(m), kind: privateKey, rank: 100})
	}
}

// lookKeyEnd looks for the tail of a private key before the END line at from.
func lookKeyEnd(f *finder, from, _ int) {
	f.work.spend(perRun * 4)
	end := pemEnd.FindString(f.text[from:min(len(f.text), from+160)])
	if end == "" {
		return
	}
	start := from
	for least := max(0, from-maxWindow); start > least && pemPart[f.text[start-1]]; start-- {
	}
	f.work.spend((from - start) * perRead)
	if m := pemRest.FindStringIndex(f.text[start:from]); m != nil {
		f.add(span{from: start + m[0], to: from + len(end), kind: privateKey, rank: 100})
	}
}

// pemPart marks the characters that can occur between the BEGIN and END lines, apart from headers.
var pemPart = func() (t [256]bool) {
	for c := range 256 {
		t[c] = alnum(byte(c)) || strings.IndexByte("+/=% \t\r\n\"',|>\\", byte(c)) >= 0
	}
	return t
}()

// awsSecretCandidates returns the runs of 40 characters that may be an AWS secret access key.
// Such a key has no prefix that identifies it.
func awsSecretCandidates(s string) (out []span) {
	for i := 0; i < len(s); {
		from := i
		for i < len(s) && (alnum(s[i]) || s[i] == '/' || s[i] == '+') {
			i++
		}
		if i-from == 40 && mixed(s[from:i]) && random(s[from:i]) {
			out = append(out, span{from: from, to: i, kind: "aws_secret", learn: true})
		}
		i++
	}
	return out
}
