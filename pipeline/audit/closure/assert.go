package closure

import (
	"regexp"
	"strings"
	"sync"
)

// This file finds assertions about the fix before the first edit: its parts, their order, and what the
// fixed program does. Nothing that an agent sees before the edit shows them.

const (
	number  = `(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|both|several|multiple|a single|a couple of|a second)`
	ordinal = `(?:first|second|third|fourth|fifth|sixth|last|next|final|other|remaining|\d(?:st|nd|rd|th))`
	part    = `(?:part|hunk|place|edit|change|file|location|spot|piece|site|half|segment|chunk|statement|function|line|method|module|expression|character|operator|argument)`
	mend    = `(?:chang|edit|touch|modif|patch|fix|repair|replac|rewrit|adjust|correct|amend)(?:e|es|ed|ing|y|ies|ied|s)?`
	theFix  = `(?:fix|patch|repair|solution|correction|diff|change ?set|remedy)`
)

// patterns match assertions. They are compiled at their first use because they are large.
type patterns struct {
	partsOfFix, orderOfFix, fixedRun []*regexp.Regexp
	laterIteration                   *regexp.Regexp // a numbered iteration
}

var asserting = sync.OnceValue(func() (p patterns) {
	p.partsOfFix = []*regexp.Regexp{
		regexp.MustCompile(`(?i)\b` + theFix + `\b[^.;\n]{0,60}?\b` + number + ` (?:\w+ ){0,2}` + part + `s?\b`),
		regexp.MustCompile(`(?i)\b` + number + `[ -](?:\w+ ){0,2}` + part + `s?\b[^.;\n]{0,40}?\b(?:` + theFix + `|must change|need(?:s)? (?:to change|changing|a change|an edit|edits))\b`),
		regexp.MustCompile(`(?i)\b(?:must|needs? to|has to|have to|should|will|to) (?:be )?` + mend + `\b[^.;\n]{0,30}\b` + number + ` (?:\w+ ){0,2}` + part + `s?\b`),
		regexp.MustCompile(`(?i)\b` + number + ` (?:\w+ ){0,2}` + part + `s?\b[^.;\n]{0,20}\b(?:suffices?|is enough|are enough|(?:must|needs? to|has to|have to|should) (?:be )?` + mend + `)\b`),
		regexp.MustCompile(`(?i)\b(?:one|two|three|four|single|\d+)[ -](?:line|liner|word|character|token|file|hunk|part|statement)r? ` + theFix + `\b|\bone-liner\b`),
		regexp.MustCompile(`(?i)\bboth (?:the )?[^.;\n]{1,40} and [^.;\n]{1,40}\b(?:must|need|needs|have to|has to|should) (?:to )?(?:be )?` + mend + `\b`),
	}
	p.orderOfFix = []*regexp.Regexp{
		regexp.MustCompile(`(?i)\b(?:the|its|whose|this is the|my) ` + ordinal + ` (?:hunk|chunk|part|piece|half|segment)\b`),
		regexp.MustCompile(`(?i)\b` + ordinal + ` (?:` + part + `|of the \w+) (?:of|in) (?:the|this|my) ` + theFix + `\b`),
		regexp.MustCompile(`(?i)\b` + theFix + `\b[^.;\n]{0,40}\b(?:starts|begins|ends|continues|finishes) (?:with|in|at)\b`),
		regexp.MustCompile(`(?i)\b(?:comes?|goes|is|are) (?:first|second|third|last|next) in (?:the|this|my) ` + theFix + `\b`),
		regexp.MustCompile(`(?i)\bfirst,? (?:I |we )?` + mend + `\b[^.;\n]{0,80}\b(?:then|after that|afterwards|next|second|finally)\b`),
		regexp.MustCompile(`(?i)\b(?:I|we|to|must|should) ` + mend + ` (?:first|second|last|next)\b`),
		regexp.MustCompile(`(?i)\b(?:part|hunk|piece|half|edit|change) (?:one|two|three|four|\d) of (?:the|this|my) (?:` + theFix + `|change|edit)\b`),
		regexp.MustCompile(`(?i)\bhunk\b[^.;\n]{0,60}\b(?:before|after|first|precedes|follows|then)\b`),
	}
	p.fixedRun = []*regexp.Regexp{regexp.MustCompile(`(?i)\b(?:with the (?:fix|patch)(?: applied)?|(?:after|once) the fix|(?:in|on) the (?:fixed|patched|repaired|corrected) (?:program|version|run|code)|the (?:fixed|patched|repaired|corrected) (?:program|version|run|code))\b[^.;\n]{0,60}?\b(?:is|returns|gives|prints|shows|yields|has|was|holds|produces|becomes|reads)\b`)}
	p.laterIteration = regexp.MustCompile(`(?i)\b(third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|\d+(?:st|nd|rd|th)) (?:iteration|pass|round|hit|time|loop|visit|repetition|turn of the loop)\b|\b(?:iteration|pass|hit|round) (?:number |no\. ?)?(\d+)\b`)
	return p
})

var ordinals = map[string]string{
	"third": "3", "fourth": "4", "fifth": "5", "sixth": "6", "seventh": "7", "eighth": "8", "ninth": "9", "tenth": "10",
}

// Hints are words without which a text contains no assertion of a kind. They save most of the time.
const (
	aboutFix = 1 << iota
	aboutParts
	aboutOrder
	aboutRun
	aboutIteration
)

var hints = func() map[string]int {
	m := map[string]int{}
	for hint, list := range map[int]string{
		aboutFix: `fix fixes fixed fixing patch patches patched repair repairs repaired solution correct correction corrects corrected diff change changes
			changed changing changeset remedy hunk hunks edit edits edited editing suffice suffices enough touch touches touched touching modify modifies
			modified modifying modification liner adjust adjusted rewrite rewritten replace replaced amend amended chunk chunks`,
		aboutParts: `part parts hunk hunks place places edit edits change changes file files location locations spot spots piece pieces site sites half
			segment chunk statement statements function functions line lines method methods module modules expression expressions operator argument both liner word character token`,
		aboutOrder: `first second third fourth fifth last next final other remaining hunk hunks part half piece start starts begins begin ends end continues finishes
			chunk 1st 2nd 3rd`,
		aboutRun:       `fix patch fixed patched repaired corrected`,
		aboutIteration: `third fourth fifth sixth seventh eighth ninth tenth`,
	} {
		for _, w := range strings.Fields(list) {
			m[w] |= hint
		}
	}
	return m
}()

// hintsIn returns the hints in a text.
func hintsIn(text string) (found int) {
	var word [16]byte
	isCounted := false // the next word may be a number of an iteration
	for i := 0; i < len(text); i++ {
		n := 0
		for ; i < len(text) && classes[text[i]]&(letter|digit) != 0; i++ {
			if n < len(word) {
				word[n] = text[i] | 0x20
				n++
			}
		}
		if n > 2 {
			found |= hints[string(word[:n])]
			if word[0] <= '9' && word[n-1] > '9' { // 12th
				found |= aboutIteration
			}
		}
		if n > 0 && word[0] <= '9' && isCounted {
			found |= aboutIteration
		}
		switch string(word[:n]) {
		case "iteration", "hit", "pass", "round", "number":
			isCounted = true
		default:
			isCounted = false
		}
	}
	return found
}

// assertions checks a text. stops is the number of stops of the debugger so far.
func (k *checker) assertions(text string, stops int) {
	said := hintsIn(text)
	first := func(kind string, patterns []*regexp.Regexp) {
		for _, re := range patterns {
			if m := re.FindString(text); m != "" {
				k.report(kind, m)
				return
			}
		}
	}
	if said&(aboutFix|aboutParts) == aboutFix|aboutParts {
		first(Parts, asserting().partsOfFix)
	}
	if said&(aboutFix|aboutOrder) == aboutFix|aboutOrder {
		first(Order, asserting().orderOfFix)
	}
	if said&aboutRun != 0 {
		first(Value, asserting().fixedRun)
	}
	if said&aboutIteration != 0 {
		for _, m := range asserting().laterIteration.FindAllStringSubmatch(text, -1) {
			v := ordinals[strings.ToLower(m[1])]
			if v == "" {
				v, _ = numberAt(m[1] + m[2])
			}
			if n := atoi(v); n > stops+1 && !k.wasShown(v) {
				k.report(Iteration, m[0])
			}
		}
	}
}
