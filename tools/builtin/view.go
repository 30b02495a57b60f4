package builtin

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

type viewArgs struct {
	Path        string `json:"path" jsonschema:"File to view, relative to the workspace or absolute below it."`
	Start       *int   `json:"start,omitempty" jsonschema:"First line to show, counted from 1. Default: 1."`
	End         *int   `json:"end,omitempty" jsonschema:"Last line to show, inclusive. Default: the last line of the file."`
	LineNumbers *bool  `json:"line_numbers,omitempty" jsonschema:"Prefix each line with its number, and with B where a breakpoint is set. Default: true."`
}

type viewSettings struct{ tools.Settings }

func init() {
	start, end := 10, 40
	register("show a file or a range of its lines", func(c viewSettings) (tools.Def[viewArgs], error) {
		return tools.Def[viewArgs]{
			Name: "view", Category: "view",
			Description: "Show a text file of the workspace, whole or a range of lines, with line numbers. " +
				"Lines that carry a breakpoint are marked with B. Line numbers are not part of the file. " +
				"Long files are shown in parts: ask for the next part with start and end.",
			Example: viewArgs{Path: "src/main.py", Start: &start, End: &end},
			More:    "view a smaller range with start and end",
			Call:    view,
		}, nil
	})
}

const (
	viewMaxFile  = 8 << 20  // bytes read of one file
	viewMaxBytes = 48 << 10 // shown at once, in whole lines; below tools.MaxText
	viewMaxLine  = 2000     // bytes shown of one line
)

func view(ctx context.Context, s *env.Session, a viewArgs) (schemas.Observation, error) {
	p, err := file(ctx, s, a.Path)
	if err != nil {
		return schemas.Observation{}, err
	}
	data, total, err := s.Sandbox.ReadFile(ctx, p.Abs, viewMaxFile)
	if err != nil {
		return schemas.Observation{}, err
	}
	if isBinary(data) {
		return schemas.Observation{}, tools.Mistake(
			"%s is a binary file (%s); view shows text only. With bash you can inspect it: file %s; xxd %s | head",
			p.Rel, plural(int(total), "byte"), p.Rel, p.Rel)
	}
	if len(data) == 0 {
		return schemas.Observation{Text: fmt.Sprintf("%s is an empty file.", p.Rel), Targets: []string{p.Rel}}, nil
	}
	text := splitLines(data)
	start, end, err := viewRange(a, p.Rel, len(text))
	if err != nil {
		return schemas.Observation{}, err
	}
	numbers := a.LineNumbers == nil || *a.LineNumbers
	shown, last := viewLines(s, p.Rel, text, start, end, numbers)
	head := fmt.Sprintf("%s, lines %d-%d of %d", p.Rel, start, last, len(text))
	if total > int64(len(data)) {
		head += fmt.Sprintf(" in the first %d of %d bytes", len(data), total)
	}
	if numbers && marked(s, p.Rel, start, last) {
		head += " (B marks a breakpoint)"
	}
	if last < end {
		shown += fmt.Sprintf("[lines %d-%d are not shown; view them with start=%d]\n", last+1, end, last+1)
	}
	return schemas.Observation{Text: head + "\n" + shown, Targets: []string{lines(p.Rel, start, last)}}, nil
}

// viewRange is the range asked for, 1-based and inclusive, within total lines.
func viewRange(a viewArgs, rel string, total int) (start, end int, err error) {
	start, end = 1, total
	if a.Start != nil {
		start = *a.Start
	}
	if a.End != nil {
		end = min(*a.End, total)
	}
	switch {
	case start < 1, a.End != nil && *a.End < 1:
		return 0, 0, tools.Mistake("Lines are counted from 1. %s has %s.", rel, plural(total, "line"))
	case start > total:
		return 0, 0, tools.Mistake("start=%d is beyond the end of %s, which has %s.", start, rel, plural(total, "line"))
	case start > end:
		return 0, 0, tools.Mistake("start=%d is greater than end=%d. Give start <= end.", start, end)
	}
	return start, end, nil
}

// viewLines renders lines start..end, as many as fit, and tells the last one.
func viewLines(s *env.Session, rel string, text []string, start, end int, numbers bool) (shown string, last int) {
	points := map[int]bool{}
	for _, b := range s.Debugger.Breakpoints() {
		if b.File == rel {
			points[b.Line] = true
		}
	}
	width := max(4, len(fmt.Sprint(end)))
	var b strings.Builder
	for n := start; n <= end; n++ {
		line := shorten(strings.ReplaceAll(text[n-1], "\r", `\r`), viewMaxLine)
		if b.Len()+len(line) > viewMaxBytes && n > start {
			return b.String(), n - 1
		}
		if numbers {
			mark := " "
			if points[n] {
				mark = "B"
			}
			fmt.Fprintf(&b, "%s%*d  ", mark, width, n)
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String(), end
}

func marked(s *env.Session, rel string, start, end int) bool {
	for _, b := range s.Debugger.Breakpoints() {
		if b.File == rel && start <= b.Line && b.Line <= end {
			return true
		}
	}
	return false
}

// splitLines splits a file at its newlines; a CR before one goes, and a final
// newline begins no further line.
func splitLines(data []byte) []string {
	out := strings.Split(strings.ToValidUTF8(string(data), "\uFFFD"), "\n")
	if out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	for i := range out {
		out[i] = strings.TrimSuffix(out[i], "\r")
	}
	return out
}

// isBinary: a NUL in the first 8 KiB, as grep and git decide it.
func isBinary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 8<<10)], 0) >= 0 }

// shorten cuts a line at limit bytes and says how much is missing.
func shorten(line string, limit int) string {
	if len(line) <= limit {
		return line
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(line[cut]) {
		cut--
	}
	return fmt.Sprintf("%s... [%s more]", line[:cut], plural(len(line)-cut, "byte"))
}
