package builtin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

// splice replaces the bytes [from, to) of a text.
type splice struct {
	from, to int
	text     string
}

// applySplices applies splices, which are in order and do not overlap.
func applySplices(old string, splices []splice) string {
	var b strings.Builder
	at := 0
	for _, c := range splices {
		b.WriteString(old[at:c.from])
		b.WriteString(c.text)
		at = c.to
	}
	b.WriteString(old[at:])
	return b.String()
}

// bom is the byte order mark that some editors put at the start of UTF-8 files.
const bom = "\uFEFF"

// planEdit returns the splices of an edit and a sentence that describes them. A byte order
// mark stays and is not part of line 1.
func planEdit(p place, old string, a editArgs) (splices []splice, summary string, err error) {
	code := schemas.Value(a.NewCode)
	body, hasBOM := strings.CutPrefix(old, bom)
	if hasBOM {
		code = strings.TrimPrefix(code, bom)
	}
	splices, summary, err = planBody(p, body, code, a)
	if hasBOM {
		for i := range splices {
			splices[i].from += len(bom)
			splices[i].to += len(bom)
		}
	}
	return splices, summary, err
}

// planBody is planEdit for a text without a byte order mark.
func planBody(p place, old, code string, a editArgs) ([]splice, string, error) {
	ways := 0
	for _, given := range []bool{a.Start != nil || a.End != nil, a.InsertAfter != nil, a.OldCode != nil && *a.OldCode != ""} {
		if given {
			ways++
		}
	}
	switch {
	case ways > 1:
		return nil, "", tools.NewUserError("Give only one of old_code, insert_after and line numbers (start and end).")
	case a.End != nil && a.Start == nil:
		return nil, "", tools.NewUserError("You gave end=%d without start. Give start as well, or omit both to replace the whole file.", *a.End)
	case a.OldCode != nil && *a.OldCode != "":
		return replaceText(p, old, code, a)
	case a.ReplaceAll != nil && *a.ReplaceAll:
		return nil, "", tools.NewUserError("replace_all needs old_code: give the text to replace.")
	case !p.Exists:
		return create(p, code, a)
	case a.InsertAfter != nil:
		return insert(p, old, code, *a.InsertAfter)
	case a.Start != nil:
		return replaceLines(p, old, code, a)
	case a.OldCode != nil && old != "":
		return nil, "", tools.NewUserError("old_code is empty, so it selects nothing in %s (%s). Give the text to replace, start and end to replace lines, "+
			"or insert_after to add lines. To replace the whole file, omit old_code.", p, plural(lineCount(old), "line"))
	case code == "":
		return nil, "", tools.NewUserError("new_code is empty and no lines are selected. To delete lines, give start and end; "+
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

// create plans a new file.
func create(p place, code string, a editArgs) ([]splice, string, error) {
	line := 0
	for _, n := range []*int{a.Start, a.InsertAfter} {
		if n != nil {
			line = *n
		}
	}
	switch {
	case line > 1 || a.InsertAfter != nil && line > 0:
		return nil, "", tools.NewUserError("%s does not exist, so it has no line %d. To create it, omit start, end and insert_after.", p, line)
	case a.NewCode == nil:
		return nil, "", tools.NewUserError("%s does not exist. To create it, give its text as new_code.", p)
	}
	return []splice{{0, 0, code}}, fmt.Sprintf("Created %s with %s.", p, plural(lineCount(code), "line")), nil
}

// insert plans the insertion of lines after line n.
func insert(p place, old, code string, n int) ([]splice, string, error) {
	total := lineCount(old)
	switch {
	case n < 0 || n > total:
		return nil, "", tools.NewUserError("insert_after=%d is not a line of %s, which has %s. Give a number from 0 to %d.", n, p, plural(total, "line"), total)
	case code == "":
		return nil, "", tools.NewUserError("new_code is empty, so there is nothing to insert.")
	}
	cut := cutLines(old, n+1, n, code)
	return []splice{cut}, fmt.Sprintf("Inserted %s after line %d of %s.", plural(lineCount(code), "line"), n, p), nil
}

// replaceLines plans the replacement of whole lines. A newline at the end of the new code does
// not add an empty line.
func replaceLines(p place, old, code string, a editArgs) ([]splice, string, error) {
	start, end := *a.Start, *a.Start
	if a.End != nil {
		end = *a.End
	}
	total := lineCount(old)
	switch {
	case start < 1 || end < 1:
		return nil, "", tools.NewUserError("Line numbers start at 1. %s has %s.", p, plural(total, "line"))
	case start > end:
		return nil, "", tools.NewUserError("start=%d is greater than end=%d. Give start <= end.", start, end)
	case start > total+1:
		return nil, "", tools.NewUserError("start=%d is beyond the end of %s, which has %s. To append, give start=%d.",
			start, p, plural(total, "line"), total+1)
	case start == total+1 && code == "":
		return nil, "", tools.NewUserError("start=%d is just past the last line of %s and new_code is empty, so there is nothing to do.", start, p)
	}
	end = min(end, total)
	cut := cutLines(old, start, end, code)
	added := lineCount(code)
	switch {
	case end < start:
		return []splice{cut}, fmt.Sprintf("Appended %s to %s.", plural(added, "line"), p), nil
	case code == "":
		return []splice{cut}, fmt.Sprintf("Deleted %s of %s.", describeLines(start, end), p), nil
	}
	return []splice{cut}, fmt.Sprintf("Replaced %s of %s with %s.", describeLines(start, end), p, plural(added, "line")), nil
}

// cutLines returns the splice that replaces lines start to end with code as whole lines. If end
// is start-1, it only inserts. The new lines get the line ending of the first replaced line, or
// of the line before it. A file without a final newline stays without one.
func cutLines(old string, start, end int, code string) splice {
	all := slices.Collect(strings.Lines(old))
	cut := splice{from: len(strings.Join(all[:start-1], "")), to: len(strings.Join(all[:end], ""))}
	eol := "\n"
	for _, i := range []int{start - 1, start - 2} {
		if i >= 0 && i < len(all) && strings.HasSuffix(all[i], "\n") {
			eol = ending(all[i])
			break
		}
	}
	atEnd, unterminated := end >= len(all), old != "" && !strings.HasSuffix(old, "\n")
	if code == "" {
		if atEnd && unterminated && start > 1 { // the line before becomes the last one
			cut.from -= len(ending(all[start-2]))
		}
		return cut
	}
	if cut.text = withEnds(code, eol); !strings.HasSuffix(cut.text, "\n") {
		cut.text += eol
	}
	if atEnd && unterminated {
		cut.text = strings.TrimSuffix(cut.text, eol)
		if end < start { // appended to a line without a newline
			cut.text = eol + cut.text
		}
	}
	return cut
}

// ending returns the line ending of a text's last line.
func ending(s string) string {
	if strings.HasSuffix(s, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// withEnds converts the line endings of code to eol if that is CRLF. Models send LF even
// for files with CRLF.
func withEnds(code, eol string) string {
	if eol == "\n" {
		return code
	}
	return strings.ReplaceAll(strings.ReplaceAll(code, "\r\n", "\n"), "\n", eol)
}
