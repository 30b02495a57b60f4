package builtin

import (
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/tools"
)

// splice replaces the bytes from..to of a text.
type splice struct {
	from, to int
	text     string
}

// apply makes splices, which are in order and apart from each other.
func apply(old string, cuts []splice) string {
	var b strings.Builder
	at := 0
	for _, c := range cuts {
		b.WriteString(old[at:c.from])
		b.WriteString(c.text)
		at = c.to
	}
	b.WriteString(old[at:])
	return b.String()
}

// bom is the byte order mark that some editors put before UTF-8.
const bom = "\uFEFF"

// plan says what an edit replaces in a file's text, and in words what it did. A
// byte order mark stays, and is no part of line 1.
func plan(p place, old string, a editArgs) (cuts []splice, did string, err error) {
	code := ""
	if a.NewCode != nil {
		code = *a.NewCode
	}
	body, marked := strings.CutPrefix(old, bom)
	if marked {
		code = strings.TrimPrefix(code, bom)
	}
	cuts, did, err = planBody(p, body, code, a)
	if marked {
		for i := range cuts {
			cuts[i].from += len(bom)
			cuts[i].to += len(bom)
		}
	}
	return cuts, did, err
}

func planBody(p place, old, code string, a editArgs) ([]splice, string, error) {
	ways := 0
	for _, given := range []bool{a.Start != nil || a.End != nil, a.InsertAfter != nil, a.OldCode != nil && *a.OldCode != ""} {
		if given {
			ways++
		}
	}
	switch {
	case ways > 1:
		return nil, "", tools.Mistake("Give only one of old_code, insert_after and line numbers (start and end).")
	case a.End != nil && a.Start == nil:
		return nil, "", tools.Mistake("You gave end=%d without start. Give start as well, or omit both to replace the whole file.", *a.End)
	case a.OldCode != nil && *a.OldCode != "":
		return replaceText(p, old, code, a)
	case a.ReplaceAll != nil && *a.ReplaceAll:
		return nil, "", tools.Mistake("replace_all needs old_code: give the text to replace.")
	case !p.Exists:
		return create(p, code, a)
	case a.InsertAfter != nil:
		return insert(p, old, code, *a.InsertAfter)
	case a.Start != nil:
		return replaceLines(p, old, code, a)
	case a.OldCode != nil && old != "":
		return nil, "", tools.Mistake("old_code is empty, so it selects nothing in %s (%s). Give the text to replace, start and end to replace lines, "+
			"or insert_after to add lines. To replace the whole file, omit old_code.", p, plural(lineCount(old), "line"))
	case code == "":
		return nil, "", tools.Mistake("new_code is empty and no lines are selected. To delete lines, give start and end; "+
			"to delete the file, use bash: rm %s", p)
	}
	if n := strings.Count(old, "\n"); n > 0 && strings.Count(old, "\r\n") == n {
		code = withEnds(code, "\r\n")
	}
	if strings.HasSuffix(old, "\n") && !strings.HasSuffix(code, "\n") {
		code += ending(old)
	}
	return []splice{{0, len(old), code}}, fmt.Sprintf("Replaced all of %s (%s) with %s.", p,
		plural(lineCount(old), "line"), plural(lineCount(code), "line")), nil
}

func create(p place, code string, a editArgs) ([]splice, string, error) {
	line := 0
	for _, n := range []*int{a.Start, a.InsertAfter} {
		if n != nil {
			line = *n
		}
	}
	switch {
	case line > 1 || a.InsertAfter != nil && line > 0:
		return nil, "", tools.Mistake("%s does not exist, so it has no line %d. To create it, omit start, end and insert_after.", p, line)
	case a.NewCode == nil:
		return nil, "", tools.Mistake("%s does not exist. To create it, give its text as new_code.", p)
	}
	return []splice{{0, 0, code}}, fmt.Sprintf("Created %s with %s.", p, plural(lineCount(code), "line")), nil
}

// insert adds lines after line n.
func insert(p place, old, code string, n int) ([]splice, string, error) {
	total := lineCount(old)
	switch {
	case n < 0 || n > total:
		return nil, "", tools.Mistake("insert_after=%d is not a line of %s, which has %s. Give a number from 0 to %d.", n, p, plural(total, "line"), total)
	case code == "":
		return nil, "", tools.Mistake("new_code is empty, so there is nothing to insert.")
	}
	cut := cutLines(old, n+1, n, code)
	return []splice{cut}, fmt.Sprintf("Inserted %s after line %d of %s.", plural(lineCount(code), "line"), n, p), nil
}

// replaceLines replaces whole lines. A single newline at the end of the new code
// ends its last line and adds none.
func replaceLines(p place, old, code string, a editArgs) ([]splice, string, error) {
	start, end := *a.Start, *a.Start
	if a.End != nil {
		end = *a.End
	}
	total := lineCount(old)
	switch {
	case start < 1 || end < 1:
		return nil, "", tools.Mistake("Line numbers start at 1. %s has %s.", p, plural(total, "line"))
	case start > end:
		return nil, "", tools.Mistake("start=%d is greater than end=%d. Give start <= end.", start, end)
	case start > total+1:
		return nil, "", tools.Mistake("start=%d is beyond the end of %s, which has %s. To append, give start=%d.",
			start, p, plural(total, "line"), total+1)
	case start == total+1 && code == "":
		return nil, "", tools.Mistake("start=%d is just past the last line of %s and new_code is empty, so there is nothing to do.", start, p)
	}
	end = min(end, total)
	cut := cutLines(old, start, end, code)
	added := lineCount(code)
	switch {
	case end < start:
		return []splice{cut}, fmt.Sprintf("Appended %s to %s.", plural(added, "line"), p), nil
	case code == "":
		return []splice{cut}, fmt.Sprintf("Deleted %s of %s.", asLines(start, end), p), nil
	}
	return []splice{cut}, fmt.Sprintf("Replaced %s of %s with %s.", asLines(start, end), p, plural(added, "line")), nil
}

// cutLines replaces lines start..end by whole lines of code; end = start-1
// replaces none. Its lines end as the first line replaced does, or the one
// before. A file without a final newline stays without.
func cutLines(old string, start, end int, code string) splice {
	all := strings.SplitAfter(old, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	cut := splice{from: len(strings.Join(all[:start-1], "")), to: len(strings.Join(all[:end], ""))}
	eol := "\n"
	for _, i := range []int{start - 1, start - 2} {
		if i >= 0 && i < len(all) && strings.HasSuffix(all[i], "\n") {
			eol = ending(all[i])
			break
		}
	}
	atEnd, bare := end >= len(all), old != "" && !strings.HasSuffix(old, "\n")
	if code == "" {
		if atEnd && bare && start > 1 { // the line before is the last one now, and was not
			cut.from -= len(ending(all[start-2]))
		}
		return cut
	}
	if cut.text = withEnds(code, eol); !strings.HasSuffix(cut.text, "\n") {
		cut.text += eol
	}
	if atEnd && bare {
		cut.text = strings.TrimSuffix(cut.text, eol)
		if end < start { // behind a line without an end
			cut.text = eol + cut.text
		}
	}
	return cut
}

// ending is how a text's last line ends.
func ending(s string) string {
	if strings.HasSuffix(s, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// withEnds writes code as it stands among lines that end in eol: a model sends
// plain newlines for CRLF, too.
func withEnds(code, eol string) string {
	if eol == "\n" {
		return code
	}
	return strings.ReplaceAll(strings.ReplaceAll(code, "\r\n", "\n"), "\n", eol)
}
