package pdb

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// where describes the current frame: its position, why the program stopped there, and the files that
// have changed since the program loaded them.
func where(at *state) string {
	text := fmt.Sprintf("Current frame: %s:%d in %s", at.File, at.Line, at.Function)
	switch {
	case at.PostMortem:
		text += " (post-mortem: an uncaught exception ended the program here; p, w, up and down still work)"
	case at.Caught:
		text += " (post-mortem: this exception was caught; p, w, up and down work here, everything else continues the program)"
	case at.Event == "call":
		text += " (entering the function)"
	case at.Event == "return":
		text += " (about to return)"
	case at.Event == "exception":
		text += " (an exception is being raised)"
	}
	if n := len(at.Changed); n > 0 {
		shown := strings.Join(at.Changed[:min(n, 5)], ", ")
		if n > 5 {
			shown += fmt.Sprintf(" and %d more", n-5)
		}
		text += "\nThe program still runs the old version of " + shown + "; use restart to run what is on disk now."
	}
	return text
}

// listing returns the source around the current line in the format of pdb's list command: ->
// marks the current line, and B marks a breakpoint.
func listing(at *state, points []numberedBreakpoint) string {
	if len(at.Lines) == 0 {
		return "(no source is available for this frame)"
	}
	hasBreakpoint := map[int]bool{}
	for _, p := range points {
		if p.File == at.File {
			hasBreakpoint[p.Line] = true
		}
	}
	width := max(3, len(strconv.Itoa(at.First+len(at.Lines)-1)))
	var b strings.Builder
	for i, line := range at.Lines {
		n := at.First + i
		mark := []byte("   ")
		if hasBreakpoint[n] {
			mark[0] = 'B'
		}
		if n == at.Line {
			copy(mark[1:], "->")
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%*d %s\t%s", width, n, mark, line)
	}
	return b.String()
}

// target returns the range of lines that listing shows, as FILE:FIRST-LAST. It returns "" if the frame
// has no source or its file is outside the workspace.
func target(at *state) string {
	if len(at.Lines) == 0 || path.IsAbs(at.File) || strings.HasPrefix(at.File, "<") {
		return ""
	}
	return fmt.Sprintf("%s:%d-%d", at.File, at.First, at.First+len(at.Lines)-1)
}
