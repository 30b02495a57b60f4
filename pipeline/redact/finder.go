package redact

import (
	"cmp"
	"slices"
	"strings"
)

// finder looks for secrets in one text.
type finder struct {
	text         string
	lower        []byte
	work         *meter
	spans        []span
	nameEnd      int              // end of the last name that was searched
	commandEnd   map[*command]int // end of the arguments that were searched, by command
	runEnd       int              // end of the last run of key characters
	failed       map[*rule]int    // position of the last failure, of rules that read their whole line
	taken        [2]int           // bounds of the last secret that a rule found
	table        [2]int           // offsets of the last table header and of the end of its rows
	placeholders [][]int          // bounds of the placeholders ahead in the text
}

// inPlaceholder reports whether the keyword at from is part of a placeholder, such as
// [REDACTED:private_key:1]. Without this test, searching a redacted text again would take more
// work than redacting it. Successive calls must not go back in the text.
func (f *finder) inPlaceholder(from int) bool {
	for len(f.placeholders) > 0 && f.placeholders[0][1] <= from {
		f.placeholders = f.placeholders[1:]
	}
	return len(f.placeholders) > 0 && f.placeholders[0][0] <= from
}

func (f *finder) add(s span) {
	if s.from < s.to {
		f.spans = append(f.spans, s)
	}
}

// separate sorts the secrets, and merges or cuts those that overlap. Secrets overlap because
// nothing marks the end of a key: a match may include the key directly after it.
func (f *finder) separate() []span {
	slices.SortFunc(f.spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.rank, a.rank))
	})
	out := f.spans[:0]
	for _, s := range f.spans {
		if last := len(out) - 1; last >= 0 && s.from < out[last].to {
			if s.from == out[last].from || s.kind == "assigned" || out[last].kind == privateKey {
				out[last].to = max(out[last].to, s.to)
				continue
			}
			s.to = max(s.to, out[last].to)
			out[last].to = s.from
		}
		out = append(out, s)
	}
	return out
}

// runRule applies a rule to the text around its keyword at text[from:to].
func (f *finder) runRule(r *rule, from, to int) {
	if r.assigned && !f.mayAssign(to) {
		f.work.spend(1)
		return
	}
	start := max(0, from-r.back)
	if f.taken[1] <= from { // do not find the same secret again
		start = max(start, min(from, f.taken[1]))
	}
	end := min(len(f.text), to+r.ahead)
	if r.line {
		if f.failedBefore(r, from) {
			return
		}
		if n := strings.IndexByte(f.text[to:end], '\n'); n >= 0 {
			end = to + n
		}
		if !strings.Contains(f.text[to:end], r.needs) {
			f.work.spend((end - to) / 16)
			return
		}
		f.work.spend((end - start) * perRead)
	}
	m := r.re.FindStringSubmatchIndex(f.text[start:end])
	if r.back > 0 { // the expression reads the whole window
		f.work.spend((end - start) * perRead)
	}
	f.work.spend(r.cost + perRead*f.runLength(from, end))
	if m == nil {
		if r.line {
			if f.failed == nil {
				f.failed = map[*rule]int{}
			}
			f.failed[r] = from
		}
		return
	}
	f.work.spend(m[1]*perRead + perValue/2)
	if start+m[1] == end && end < len(f.text) { // the secret may continue after the window
		end = min(len(f.text), start+maxWindow)
		f.work.spend((end - start) * perRead)
		m = r.re.FindStringSubmatchIndex(f.text[start:end])
	}
	g := r.group
	if g == 0 {
		for i := 1; i < len(m)/2 && g == 0; i++ {
			if m[2*i] >= 0 {
				g = i
			}
		}
	}
	s := span{from: start + m[2*g], to: start + m[2*g+1], kind: r.kind, rank: 1 + to - from}
	if f.isSecret(r, &s, start+m[0]) {
		f.add(s)
		f.taken = [2]int{s.from, max(s.to, f.taken[1])}
	}
}

// failedBefore reports whether a rule that reads its whole line already failed on the text after
// its keyword, at an earlier keyword of the same command. This avoids a second search if the
// command repeats the keyword.
func (f *finder) failedBefore(r *rule, from int) bool {
	last, ok := f.failed[r]
	if !ok || from-last > window/2 {
		return false
	}
	f.work.spend((from - last) / 8)
	return !strings.ContainsAny(f.text[last:from], "\n|;=\"'(")
}

// mayAssign reports whether an assignment operator may follow the vendor name that ends at to.
func (f *finder) mayAssign(to int) bool {
	end := min(len(f.text), to+24)
	for to < end && (wordAt(f.text, to) || strings.IndexByte(" \t\r\n\f.-'\"", f.text[to]) >= 0) {
		to++
	}
	return to < end && strings.IndexByte("=>:|?,", f.text[to]) >= 0
}

// runLength returns the length of the run of key characters that starts at from, as far as end.
// Expressions read such a run completely before they fail. The first shortRun characters do not
// count, because reading them is part of the base cost.
func (f *finder) runLength(from, end int) int {
	for f.runEnd = max(f.runEnd, from); f.runEnd < len(f.text) && inKey[f.text[f.runEnd]]; f.runEnd++ {
	}
	return max(0, min(f.runEnd, end)-from-shortRun)
}

// isSecret reports whether a match of a rule is a secret. The match starts at begin, and s is
// its value. isSecret extends s to the end of a longer key, and sets s.learn for passwords.
func (f *finder) isSecret(r *rule, s *span, begin int) bool {
	value := strings.TrimRight(f.text[s.from:min(s.to, s.from+window)], "-_")
	if isFiller(value) || r.entropy > 0 && entropy(value) < r.entropy {
		return false
	}
	switch {
	case r.password:
		s.learn = learnable(value)
		return assignment{value: value, quoted: true, name: strong, prose: r.unlikeAName}.secret()
	case r.vendor:
		return !wordAt(f.text, s.to) && (uuid.MatchString(value) || generated(value)) && f.secretVendor(begin, s.from, value)
	}
	if r.generated && !generated(value) && !generated(value[:min(len(value), keySize)]) {
		return false
	}
	// atStart: the match does not continue a word before it, except directly after another secret.
	atStart := begin == 0 || !alnum(f.text[begin]) || !alnum(f.text[begin-1]) || escaped(f.text[:begin]) || !r.wordStart && f.taken[0] < begin && begin <= f.taken[1]
	switch {
	case r.shortKeyword && (!atStart || wordAt(f.text, s.to) || !generated(value)), !atStart && r.wordStart:
		return false
	case !atStart && (len(value) < keySize && !hasLetterAndDigit(value) || r.generated && (len(value) < keySize || !mixed(value))): // such as the end of "task-1" or "disk-a2b"
		return false
	}
	if rest := s.to; rest < len(f.text) && alnum(f.text[rest]) {
		if r.kind == awsKey && !hasLetterAndDigit(value) { // a longer run of capitals, such as a DNA sequence
			return false
		}
		for rest < len(f.text) && keyByte[f.text[rest]] {
			rest++
		}
		f.work.spend((rest - s.to) / 8)
		s.to = rest
	}
	return !r.hexKeyword || !allHex(f.text[s.from:min(s.to, s.from+window)])
}

// secretVendor reports whether a value after the name of a vendor can be a secret. A hash or a
// UUID can be one only if the name before it contains a word such as "token".
func (f *finder) secretVendor(from, to int, value string) bool {
	if !uuid.MatchString(value) && !hexadecimal(value) {
		return true
	}
	name := string(f.lower[max(0, from-20):to])
	for _, word := range []string{"key", "token", "secret", "pass", "auth", "cred"} {
		if strings.Contains(name, word) {
			return !strings.Contains(name, "public") && !strings.Contains(name, "key_id")
		}
	}
	return false
}

// keySize is the length from which a value may be a key even if it directly adjoins other text.
const keySize = 40
