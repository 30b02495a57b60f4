package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// textBreakpoints is how many breakpoints are listed before "and N more".
const textBreakpoints = 5

// writeText writes an answer in human-readable form: a line with the operation and the state
// of the episode, fenced observations and patch, then the verdict, tools and breakpoints.
func writeText(out io.Writer, o op, a answer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "== %s == %s, score %s, %.0f ms\n", title(o), status(a), score(a), a.DurationMS)
	if a.Error != "" {
		fmt.Fprintf(&b, "error: %s\n", a.Error)
	}
	for i, each := range a.Observations {
		if i > 0 {
			fmt.Fprintf(&b, "%s says:\n", each.Source)
		}
		fence(&b, each.Text)
	}
	if a.Patch != nil && *a.Patch != "" {
		fence(&b, *a.Patch)
	}
	if v := a.Verdict; v != nil {
		fmt.Fprintf(&b, "verdict: %s", v.Status)
		if v.Reason != "" {
			fmt.Fprintf(&b, " (%s)", v.Reason)
		}
		b.WriteByte('\n')
	}
	if len(a.Tools) > 0 {
		var names []string
		for _, t := range a.Tools {
			names = append(names, t.Name)
		}
		fmt.Fprintf(&b, "tools: %s\n", strings.Join(names, ", "))
	}
	if f := a.Frame; f != nil {
		fmt.Fprintf(&b, "stopped at: %s:%d in %s\n", f.File, f.Line, f.Function)
	}
	if a.OK {
		fmt.Fprintf(&b, "breakpoints: %s\n", breakpointList(a.Breakpoints))
	}
	b.WriteByte('\n')
	_, err := out.Write(b.Bytes())
	return err
}

func title(o op) string {
	switch {
	case o.Op == "step" && o.Tool == "":
		return "step without a call"
	case o.Op == "step":
		return strings.TrimSpace(o.Tool + " " + string(o.Arguments))
	case o.Op == "reset" && o.Soft:
		return "soft reset"
	case o.Op == "":
		return "no operation"
	}
	return o.Op
}

func status(a answer) string {
	switch {
	case a.Resolved != nil && *a.Resolved:
		return "resolved"
	case a.Resolved != nil:
		return "unresolved"
	case a.Terminated:
		return "ended"
	case a.TimedOut:
		return "in progress, timed out"
	case a.IsError || !a.OK:
		return "in progress, failed"
	}
	return "in progress"
}

// score returns score/maximum, with "?" for the maximum before an evaluation.
func score(a answer) string {
	if a.MaxScore == nil {
		return fmt.Sprintf("%g/?", a.Score)
	}
	return fmt.Sprintf("%g/%g", a.Score, *a.MaxScore)
}

// fence writes text as a fenced Markdown block, whose fence is longer than any in the text.
func fence(b *bytes.Buffer, text string) {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	fmt.Fprintf(b, "%s\n%s\n%s\n", mark, strings.TrimSuffix(text, "\n"), mark)
}

func breakpointList(all []breakpoint) string {
	var out []string
	for i, p := range all {
		if i == textBreakpoints {
			out = append(out, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		one := fmt.Sprintf("%s:%d", p.File, p.Line)
		if p.Condition != nil {
			one += " if " + *p.Condition
		}
		if p.Temporary {
			one += " (temporary)"
		}
		if !p.Enabled {
			one += " (disabled)"
		}
		out = append(out, one)
	}
	if len(out) == 0 {
		return "none set"
	}
	return strings.Join(out, ", ")
}
