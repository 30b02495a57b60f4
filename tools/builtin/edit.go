package builtin

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

type editArgs struct {
	Path    string  `json:"path" jsonschema:"File to change or to create, relative to the workspace or absolute below it."`
	NewCode string  `json:"new_code" jsonschema:"The new text, with its indentation and without line numbers."`
	Start   *int    `json:"start,omitempty" jsonschema:"First line to replace, counted from 1. One more than the number of lines appends at the end."`
	End     *int    `json:"end,omitempty" jsonschema:"Last line to replace, inclusive. Default: start, so only that line."`
	OldCode *string `json:"old_code,omitempty" jsonschema:"Instead of start and end: the exact text to replace. It must occur exactly once in the file."`
}

type editSettings struct{ tools.Settings }

func init() {
	start, end := 12, 13
	register("change or create a file", func(c editSettings) (tools.Def[editArgs], error) {
		return tools.Def[editArgs]{
			Name: "edit", Category: "edit",
			Description: "Change a text file of the workspace, or create one. Say what to replace in one of three ways: " +
				"start and end name lines; old_code is text that occurs exactly once; neither replaces the whole file, " +
				"or creates it. An empty new_code deletes the lines or the text. The answer is a unified diff; " +
				"after it, line numbers below the change have moved.",
			Example: editArgs{Path: "src/main.py", NewCode: "    total = 0\n    for item in items:", Start: &start, End: &end},
			More:    "view the file to see the result",
			Call:    edit,
		}, nil
	})
}

const editMaxFile = 4 << 20

func edit(ctx context.Context, s *env.Session, a editArgs) (schemas.Observation, error) {
	p, err := locate(ctx, s, a.Path)
	switch {
	case err != nil:
		return schemas.Observation{}, err
	case p.IsDir:
		return schemas.Observation{}, tools.Mistake("%s is a directory. Give the path of a file.", p.Rel)
	case strings.HasSuffix(a.Path, "/"):
		return schemas.Observation{}, tools.Mistake("%s ends in / like a directory. Give the path of a file.", a.Path)
	case p.Rel == ".git" || strings.HasPrefix(p.Rel, ".git/"):
		return schemas.Observation{}, tools.Mistake("%s belongs to git. Edit the files of the project instead.", p.Rel)
	}
	var old string
	if p.Exists {
		data, total, err := s.Sandbox.ReadFile(ctx, p.Abs, editMaxFile)
		switch {
		case err != nil:
			return schemas.Observation{}, err
		case total > editMaxFile:
			return schemas.Observation{}, tools.Mistake("%s is too large to edit here (%d bytes). Use bash, for example sed -i.", p.Rel, total)
		case isBinary(data):
			return schemas.Observation{}, tools.Mistake("%s is a binary file; edit changes text only.", p.Rel)
		}
		old = string(data)
	}
	text, did, err := rewrite(p, old, a)
	if err != nil {
		return schemas.Observation{}, err
	}
	if p.Exists && text == old {
		return schemas.Observation{}, tools.Mistake("Nothing changed: %s already has exactly this text. View it before editing again.", p.Rel)
	}
	if err := s.Sandbox.WriteFile(ctx, p.Abs, []byte(text), 0); err != nil {
		return schemas.Observation{}, err
	}
	change := changed(p.Rel, old, text)
	s.FileChanged(ctx, change)
	return schemas.Observation{
		Text:    did + "\n" + editDiff(p, old, text),
		Targets: []string{editTarget(p, change)},
	}, nil
}

func editTarget(p place, c env.Edit) string {
	if !p.Exists || c.Added == 0 {
		return p.Rel
	}
	return lines(p.Rel, c.First, c.First+c.Added-1)
}

func editDiff(p place, old, text string) string {
	from := "a/" + p.Rel
	if !p.Exists {
		from = "/dev/null"
	}
	return udiff.Unified(from, "b/"+p.Rel, old, text)
}

// rewrite applies the edit to a file's text and says what it did. In a file
// whose lines all end in CRLF the model works with plain newlines.
func rewrite(p place, old string, a editArgs) (text, did string, err error) {
	if n := strings.Count(old, "\n"); n > 0 && strings.Count(old, "\r\n") == n {
		a.NewCode = toLF(a.NewCode)
		if a.OldCode != nil {
			lf := toLF(*a.OldCode)
			a.OldCode = &lf
		}
		text, did, err = replace(p, toLF(old), a)
		return strings.ReplaceAll(text, "\n", "\r\n"), did, err
	}
	return replace(p, old, a)
}

func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

func replace(p place, old string, a editArgs) (text, did string, err error) {
	switch {
	case a.OldCode != nil && (a.Start != nil || a.End != nil):
		return "", "", tools.Mistake("Give either old_code or line numbers, not both.")
	case a.End != nil && a.Start == nil:
		return "", "", tools.Mistake("end=%d has no start. Give start too, or leave both out to replace the whole file.", *a.End)
	case a.OldCode != nil && *a.OldCode != "":
		return replaceText(p, old, *a.OldCode, a.NewCode)
	case !p.Exists:
		if a.Start != nil && *a.Start > 1 {
			return "", "", tools.Mistake("%s does not exist, so it has no line %d. To create it, leave start and end out.", p.Rel, *a.Start)
		}
		return a.NewCode, fmt.Sprintf("Created %s with %s.", p.Rel, plural(lineCount(a.NewCode), "line")), nil
	case a.Start != nil:
		return replaceLines(p, old, a)
	case a.NewCode == "":
		return "", "", tools.Mistake("new_code is empty and no lines are named. To delete lines give start and end; "+
			"to remove the file use bash: rm %s", p.Rel)
	}
	text = a.NewCode
	if strings.HasSuffix(old, "\n") && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text, fmt.Sprintf("Replaced the whole of %s (%s) with %s.", p.Rel,
		plural(lineCount(old), "line"), plural(lineCount(text), "line")), nil
}

// replaceLines replaces whole lines. A single newline at the end of new_code
// ends its last line and adds none.
func replaceLines(p place, old string, a editArgs) (text, did string, err error) {
	all := strings.SplitAfter(old, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	start, end := *a.Start, *a.Start
	if a.End != nil {
		end = *a.End
	}
	total := len(all)
	switch {
	case start < 1 || end < 1:
		return "", "", tools.Mistake("Lines are counted from 1. %s has %s.", p.Rel, plural(total, "line"))
	case start > end:
		return "", "", tools.Mistake("start=%d is greater than end=%d. Give start <= end.", start, end)
	case start > total+1:
		return "", "", tools.Mistake("start=%d is beyond the end of %s, which has %s. To append, give start=%d.",
			start, p.Rel, plural(total, "line"), total+1)
	case start == total+1 && a.NewCode == "":
		return "", "", tools.Mistake("Line %d is the end of %s and new_code is empty, so there is nothing to do.", start, p.Rel)
	}
	end = min(end, total)
	before, after := strings.Join(all[:start-1], ""), strings.Join(all[end:], "")
	if end < start { // appending
		end = start - 1
		after = ""
	}
	finalNewline := strings.HasSuffix(old, "\n") || old == ""
	middle := a.NewCode
	if middle != "" && !strings.HasSuffix(middle, "\n") {
		middle += "\n"
	}
	if before != "" && middle != "" && !strings.HasSuffix(before, "\n") {
		before += "\n"
	}
	text = before + middle + after
	if !finalNewline && after == "" {
		text = strings.TrimSuffix(text, "\n")
	}
	return text, replacedLines(p.Rel, start, end, lineCount(middle)), nil
}

func replacedLines(rel string, start, end, added int) string {
	which := fmt.Sprintf("lines %d-%d", start, end)
	if start == end {
		which = fmt.Sprintf("line %d", start)
	}
	switch {
	case end < start:
		return fmt.Sprintf("Appended %s to %s.", plural(added, "line"), rel)
	case added == 0:
		return fmt.Sprintf("Deleted %s of %s.", which, rel)
	}
	return fmt.Sprintf("Replaced %s of %s with %s.", which, rel, plural(added, "line"))
}

// replaceText replaces the one occurrence of a text.
func replaceText(p place, old, oldCode, newCode string) (text, did string, err error) {
	if !p.Exists {
		return "", "", tools.Mistake("%s does not exist, so there is no old_code in it. To create it, leave old_code out.", p.Rel)
	}
	switch n := strings.Count(old, oldCode); {
	case n == 0:
		return "", "", tools.Mistake("old_code does not occur in %s.%s Give the text exactly as it stands in the file, "+
			"without line numbers, or name the lines with start and end.", p.Rel, nearMiss(old, oldCode))
	case n > 1:
		return "", "", tools.Mistake("old_code occurs %d times in %s (at lines %s). Give more of the text around it, "+
			"or name the lines with start and end.", n, p.Rel, occurrences(old, oldCode))
	}
	at := strings.Index(old, oldCode)
	first := 1 + strings.Count(old[:at], "\n")
	last := first + strings.Count(strings.TrimSuffix(oldCode, "\n"), "\n")
	text = old[:at] + newCode + old[at+len(oldCode):]
	if first == last {
		return text, fmt.Sprintf("Replaced text in line %d of %s.", first, p.Rel), nil
	}
	return text, fmt.Sprintf("Replaced text in lines %d-%d of %s.", first, last, p.Rel), nil
}

// nearMiss says where the text stands with other spaces, as a sentence with a
// leading space. Only a passage of some lines is looked for.
func nearMiss(text, want string) string {
	have, wanted := bare(text), bare(strings.Trim(want, "\n"))
	if len(wanted) > 100 {
		return ""
	}
	for i := range max(0, len(have)-len(wanted)+1) {
		if slices.Equal(have[i:i+len(wanted)], wanted) {
			return fmt.Sprintf(" The same words with other spaces stand at line %d.", i+1)
		}
	}
	return ""
}

// bare is the lines of a text with single spaces between words.
func bare(text string) []string {
	all := strings.Split(text, "\n")
	for i, l := range all {
		all[i] = strings.Join(strings.Fields(l), " ")
	}
	return all
}

// occurrences lists the lines where a text begins, at most ten of them.
func occurrences(text, part string) string {
	var at []string
	for offset, line := 0, 1; len(at) < 10; {
		i := strings.Index(text[offset:], part)
		if i < 0 {
			break
		}
		line += strings.Count(text[offset:offset+i], "\n")
		at = append(at, fmt.Sprint(line))
		line += strings.Count(part, "\n")
		offset += i + len(part)
	}
	return strings.Join(at, ", ")
}

// changed is the smallest block of lines in which the two texts differ.
func changed(rel, old, text string) env.Edit {
	a, b := strings.SplitAfter(old, "\n"), strings.SplitAfter(text, "\n")
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	// The empty string behind a final newline is no line.
	count := func(all []string) int {
		n := len(all) - head - tail
		if tail == 0 && n > 0 && all[len(all)-1] == "" {
			n--
		}
		return n
	}
	return env.Edit{File: rel, First: head + 1, Removed: count(a), Added: count(b)}
}

func lineCount(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// isBinary: a NUL in the first 8 KiB, as grep and git decide it.
func isBinary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 8<<10)], 0) >= 0 }
