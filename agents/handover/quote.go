package handover

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/agents/shown"
	"github.com/tracesmith/tracesmith/schemas"
)

// This file finds values in the output of programs and tools. A value must match whole words and
// numbers, and must not lie in line numbers.

// findWords finds a sequence of words in a text, with any white space between them, and returns the
// match as it is written in the text. It skips matches that are part of a longer word or number,
// or that lie within one of the ranges in skip.
func findWords(text, words string, skip [][]int) (string, bool) {
	fields := strings.Fields(words)
	for i := range fields {
		fields[i] = regexp.QuoteMeta(fields[i])
	}
	re, err := regexp.Compile(strings.Join(fields, `[\s\v\x{85}\pZ]+`)) // the same white space as in strings.Fields
	if err != nil {                                                     // not UTF-8
		return "", false
	}
	for _, at := range re.FindAllStringIndex(text, -1) {
		within := func(r []int) bool { return r[0] <= at[0] && at[1] <= r[1] }
		if isWhole(text, at[0], at[1]) && !slices.ContainsFunc(skip, within) {
			return text[at[0]:at[1]], true
		}
	}
	return "", false
}

// isWhole reports whether text[from:to] is not part of a longer word or number.
func isWhole(text string, from, to int) bool {
	before, width := utf8.DecodeLastRuneInString(text[:from])
	beforeThat, _ := utf8.DecodeLastRuneInString(text[:from-width])
	first, width := utf8.DecodeRuneInString(text[from:])
	second, _ := utf8.DecodeRuneInString(text[from+width:])
	last, width := utf8.DecodeLastRuneInString(text[:to])
	secondToLast, _ := utf8.DecodeLastRuneInString(text[:to-width])
	after, width := utf8.DecodeRuneInString(text[to:])
	afterThat, _ := utf8.DecodeRuneInString(text[to+width:])
	switch {
	case isWordRune(before) && isWordRune(first), isWordRune(last) && isWordRune(after):
		return false
	case before == shown.HiddenRune || after == shown.HiddenRune:
		return false
	case unicode.IsDigit(first) && strings.ContainsRune(".-\u2212", before):
		return false
	case unicode.IsDigit(second) && strings.ContainsRune(".-+\u2212", first) && isWordRune(before):
		return false
	case unicode.IsDigit(last) && after == '.' && unicode.IsDigit(afterThat):
		return false
	case unicode.IsDigit(secondToLast) && last == '.' && unicode.IsDigit(after):
		return false
	case before == ',' && unicode.IsDigit(beforeThat) && thousandsGroup.MatchString(text[from:]):
		return false
	case unicode.IsDigit(last) && after == ',' && thousandsGroup.MatchString(text[to+1:]):
		return false
	}
	return true
}

// thousandsGroup matches the rest of a number like 12,500 after its comma.
var thousandsGroup = regexp.MustCompile(`^\d{3}(?:\D|$)`)

// isWordRune reports whether r can be part of a word or number. Combining marks and invisible
// format characters can.
func isWordRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || unicode.Is(unicode.Cf, r)
}

// locationNumbers has a pattern for each tool whose answers contain line numbers. The groups of a
// pattern capture text that only says where something is.
var locationNumbers = map[string]*regexp.Regexp{
	"view": regexp.MustCompile(`(?m)(\A.*)|^[ B] *(\d+)  `),
	"grep": regexp.MustCompile(`(?m)^ *(\d+)[:-] `),
	"pdb":  regexp.MustCompile(`(?m)^ *(\d+) *B? *(?:->|>>)? *\t|^Current frame: .*:(\d+) in `),
}

// locationRanges returns the ranges that locationNumbers captures in the answer to a call.
func locationRanges(call *schemas.ToolCall, text string) [][]int {
	if call == nil || locationNumbers[call.Name] == nil {
		return nil
	}
	var out [][]int
	for _, at := range locationNumbers[call.Name].FindAllStringSubmatchIndex(text, -1) {
		for g := 2; g < len(at); g += 2 {
			if at[g] >= 0 {
				out = append(out, at[g:g+2])
			}
		}
	}
	return out
}

// splitSource splits an answer into its output and, for pdb, the source listing at its end.
func splitSource(s schemas.Step) (output, code string) {
	answer, ok := shown.AnswerOf(s)
	if !ok || answer.Tool != "pdb" {
		return s.Observation.Text, ""
	}
	return shown.SplitListing(answer)
}

// echoesCall reports whether an answer can have the value only from the call itself: the call was
// refused or found nothing, and every word of the value occurs in the call.
func echoesCall(s schemas.Step, value string) bool {
	o := s.Observation
	if s.ToolCall == nil || o.ErrorClass != schemas.ErrUserError && (s.ToolCall.Name != "grep" || len(o.Targets) > 0) {
		return false
	}
	isSeparator := func(r rune) bool { return !isWordRune(r) }
	fromCall := strings.FieldsFunc(callWords(s), isSeparator)
	return !slices.ContainsFunc(strings.FieldsFunc(value, isSeparator), func(w string) bool { return !slices.Contains(fromCall, w) })
}

// callWords returns the tool's name and the string arguments of the call, one per line. For an
// observation at reset, which has no call, it returns the observation's source.
func callWords(s schemas.Step) string {
	if s.ToolCall == nil {
		return s.Observation.Source
	}
	out := []string{s.ToolCall.Name}
	var args map[string]any
	if json.Unmarshal(s.ToolCall.Arguments, &args) != nil {
		return out[0]
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if text, ok := args[name].(string); ok {
			out = append(out, text)
		}
	}
	return strings.Join(out, "\n")
}
