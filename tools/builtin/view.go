package builtin

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

type viewArgs struct {
	Path        string `json:"path" jsonschema:"File to view: a path relative to the workspace, or an absolute path inside it."`
	Start       *int   `json:"start,omitempty" jsonschema:"First line to show, counted from 1. Default: 1."`
	End         *int   `json:"end,omitempty" jsonschema:"Last line to show, inclusive. Default: the last line of the file."`
	LineNumbers *bool  `json:"line_numbers,omitempty" jsonschema:"Prefix each line with its number, and with B if it has a breakpoint. Default: true."`
}

type viewSettings struct {
	tools.Settings
	MaxLines int `json:"max_lines,omitempty"` // maximum number of lines in one observation; 0 = as many as fit
}

func init() {
	start, end := 10, 40
	register("show a file or a range of its lines", func(c viewSettings) (tools.Def[viewArgs], error) {
		var err error
		if c.MaxLines < 0 {
			err = fmt.Errorf("max_lines must not be negative: %d", c.MaxLines)
		}
		return tools.Def[viewArgs]{
			Name: "view", Category: "view",
			Description: "Show a text file in the workspace, or a range of its lines, with line numbers. " +
				"Lines with a breakpoint are marked with B. The line numbers are not part of the file. " +
				"Long files are shown in parts: use start and end to get the next part.",
			Example:        viewArgs{Path: "src/main.py", Start: &start, End: &end},
			TruncationHint: "view a smaller range with start and end",
			Call:           c.call,
		}, err
	})
}

const (
	viewMaxLines     = 10_000
	viewMaxBytes     = 48 << 10 // bytes shown of all lines; less than tools.MaxText
	viewMaxLineBytes = 2000     // bytes shown of one line
)

// call reads the range with a search that matches every line, so that only the shown lines
// leave the sandbox, however large the file is.
func (c viewSettings) call(ctx context.Context, s *env.Session, a viewArgs) (schemas.Observation, error) {
	p, err := locateFile(ctx, s, a.Path)
	if err != nil {
		return schemas.Observation{}, err
	}
	maxLines := viewMaxLines
	if c.MaxLines > 0 {
		maxLines = min(c.MaxLines, maxLines)
	}
	start, end := 1, math.MaxInt32
	if a.Start != nil {
		start = *a.Start
	}
	if a.End != nil {
		end = *a.End
	}
	first := min(max(start, 1), math.MaxInt32)
	last := min(max(end, first), first+maxLines-1)
	if start < 1 || end < 1 { // viewMistake rejects this, so no more lines are needed
		last = first
	}
	r, err := s.Sandbox.Search(ctx, env.SearchSpec{
		Path: p.Abs, Literal: true, First: first, Last: last,
		MaxMatches: maxLines, MaxBytes: viewMaxBytes, MaxLine: viewMaxLineBytes, Timeout: s.CommandTimeout,
	})
	switch {
	case err != nil:
		return schemas.Observation{}, err
	case r.Binary > 0:
		return schemas.Observation{}, tools.NewUserError(
			"%s is a binary file (%s), and view shows only text. Use bash to inspect it: file %s; xxd %s | head",
			p, plural(int(p.Size), "byte"), p, p)
	case r.LineCount == 0 && !r.Incomplete:
		return schemas.Observation{Text: fmt.Sprintf("%s is an empty file.", p), Targets: []string{p.Rel}}, nil
	}
	if err := viewMistake(p, start, end, r); err != nil {
		return schemas.Observation{}, err
	}
	return viewObservation(s, p, end, a.LineNumbers == nil || *a.LineNumbers, r), nil
}

// viewMistake returns an error for the model if the range from start to end is not in the file.
func viewMistake(p place, start, end int, r env.SearchResult) error {
	total := plural(int(r.LineCount), "line")
	if r.Stopped || r.Incomplete {
		total = "more than " + total
	}
	switch {
	case start < 1 || end < 1:
		return tools.NewUserError("Line numbers start at 1. %s has %s.", p, total)
	case start > end:
		return tools.NewUserError("start=%d is greater than end=%d. Give start <= end.", start, end)
	case len(r.Lines) == 0 && r.Incomplete:
		return tools.NewUserError("view did not reach line %d of %s in time; the file has %s. Use bash, for example: tail %s", start, p, total, p)
	case len(r.Lines) == 0:
		return tools.NewUserError("start=%d is beyond the end of %s, which has %s.", start, p, total)
	}
	return nil
}

// viewObservation renders the lines of a result; end is the last line that was requested.
func viewObservation(s *env.Session, p place, end int, numbers bool, r env.SearchResult) schemas.Observation {
	width := 0
	r.Lines, width = fittingLines(r.Lines)
	first, last := int(r.Lines[0].Number), int(r.Lines[len(r.Lines)-1].Number)
	points := map[int]bool{}
	for _, b := range s.Debugger.Breakpoints() {
		if b.File == p.Rel && first <= b.Line && b.Line <= last {
			points[b.Line] = true
		}
	}
	crlf := 0
	for _, l := range r.Lines {
		if endsCRLF(l) {
			crlf++
		}
	}
	var b strings.Builder
	for _, l := range r.Lines {
		if numbers {
			mark := " "
			if points[int(l.Number)] {
				mark = "B"
			}
			fmt.Fprintf(&b, "%s%*d  ", mark, width, l.Number)
		}
		b.WriteString(lineText(l))
		if endsCRLF(l) && crlf < len(r.Lines) { // other lines end in LF
			b.WriteString(`\r`)
		}
		b.WriteByte('\n')
	}
	knowsTotal := !r.Stopped && !r.Incomplete
	head := fmt.Sprintf("%s, lines %d-%d", p, first, last)
	if knowsTotal {
		head += fmt.Sprintf(" of %d", r.LineCount)
	} else {
		head += fmt.Sprintf(" of a file of %d bytes", p.Size)
	}
	if numbers && len(points) > 0 {
		head += " (B marks a breakpoint)"
	}
	if crlf == len(r.Lines) {
		head += " (lines end in CRLF)"
	}
	switch requested := min(end, int(r.LineCount)); {
	case last >= end:
	case !knowsTotal:
		fmt.Fprintf(&b, "[more lines follow; view them with start=%d]\n", last+1)
	case last < requested:
		fmt.Fprintf(&b, "[lines %d-%d are not shown; view them with start=%d]\n", last+1, requested, last+1)
	}
	return schemas.Observation{Text: head + "\n" + b.String(), Targets: []string{lineRange(p.Rel, first, last)}}
}

// fittingLines returns the lines that fit into one observation, and the width of their
// numbers.
func fittingLines(all []env.SearchLine) (fit []env.SearchLine, width int) {
	sum := 0
	for i, l := range all {
		width = max(4, len(fmt.Sprint(l.Number)))
		if sum += len(l.Text) + width + len("B  \n"); sum > viewMaxBytes && i > 0 {
			return all[:i], width
		}
	}
	return all, width
}

// endsCRLF reports whether a line ends in CRLF. It returns false if the end of the line was cut off.
func endsCRLF(l env.SearchLine) bool {
	return l.Cut+int64(len(l.Text)) == l.Size && strings.HasSuffix(l.Text, "\r")
}
