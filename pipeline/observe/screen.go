package observe

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// wrapOff and wrapOn are control codes of terminals.
const wrapOff, wrapOn = "\x1b[?7l", "\x1b[?7h"

// keptLines is how many lines of what was written a Screen can restore.
const keptLines = 200

// Screen writes to a terminal. It can keep some lines at the bottom, which it redraws; what is
// written meanwhile appears above them. It is safe for concurrent use.
//
// The cursor stays in an empty line below them, where the terminal displays ^C, and a shell its prompt
// if the process is killed. When its size changes, a terminal breaks lines elsewhere, and tmux moves some
// of them out of the screen and back. So the Screen then clears all that is visible and writes its own
// lines again.
type Screen struct {
	w    io.Writer
	size func() (columns, rows int)

	mu      sync.Mutex
	lines   []string // at the bottom of the terminal
	partial bool     // the last text that was written lacks its line break
	columns int      // of the terminal when the lines were drawn last
	rows    int
	written []string // the last lines, with their line breaks
}

// NewScreen returns a Screen for the terminal w. size returns the current size of the terminal, or
// 0 if it is unknown.
func NewScreen(w io.Writer, size func() (columns, rows int)) *Screen {
	return &Screen{w: w, size: size}
}

// Write writes a text above the lines at the bottom. While there are such lines, it breaks long
// lines between words.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(string(p), len(s.lines) > 0); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Say writes a line above the lines at the bottom. It breaks a long line between words.
func (s *Screen) Say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.write(line+"\n", true) // the terminal may be gone
}

func (s *Screen) write(text string, breaks bool) error {
	columns, rows := s.size()
	out := text
	if breaks {
		out = Wrap(out, columns)
	}
	if len(s.lines) > 0 && !s.partial {
		out = s.erasure(columns, rows, s.lines) + out
	}
	for line := range strings.Lines(text) {
		if s.partial {
			s.written[len(s.written)-1] += line
		} else {
			s.written = append(s.written, line)
		}
		s.partial = !strings.HasSuffix(line, "\n")
	}
	s.written = s.written[max(0, len(s.written)-keptLines):]
	if !s.partial {
		out += s.frame()
	}
	_, err := io.WriteString(s.w, out)
	return err
}

// Draw replaces the lines at the bottom. Draw() removes them. It cuts off what does not fit into the
// terminal.
func (s *Screen) Draw(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	columns, rows := s.size()
	if n := len(lines) - (rows - 2); rows > 3 && n > 1 {
		lines = append(slices.Clone(lines[:rows-2]), fmt.Sprintf("    and %d more lines", n))
	}
	next := make([]string, len(lines))
	for i, line := range lines {
		next[i] = truncate(line, columns)
	}
	out := ""
	if len(s.lines) > 0 && !s.partial {
		out = s.erasure(columns, rows, next)
	}
	s.lines, s.columns, s.rows = next, columns, rows
	if !s.partial {
		out += s.frame()
	}
	fmt.Fprint(s.w, out)
}

// erasure returns what removes the lines at the bottom, which have been drawn. next are those that are
// drawn then.
func (s *Screen) erasure(columns, rows int, next []string) string {
	if columns == s.columns && rows == s.rows {
		// Each line is cleared by itself: tmux adds what it clears from the top left corner to its history.
		return "\r\x1b[2K" + strings.Repeat("\x1b[1A\x1b[2K", len(s.lines))
	}
	s.columns, s.rows = columns, rows
	text := strings.SplitAfter(Wrap(strings.Join(s.written, ""), columns), "\n")
	return "\x1b[H\x1b[2K \x1b[J\r" + strings.Join(text[max(0, len(text)-max(rows-len(next), 1)):], "")
}

// frame returns what draws the lines at the bottom.
func (s *Screen) frame() string {
	if len(s.lines) == 0 {
		return ""
	}
	return wrapOff + strings.Join(s.lines, "\n") + "\n" + wrapOn
}

// truncate shortens a line so that it leaves a column free. Some terminals break a line that takes all.
func truncate(line string, columns int) string {
	if columns <= 1 || utf8.RuneCountInString(line) < columns {
		return line
	}
	return string([]rune(line)[:columns-2]) + "…"
}

// Wrap breaks the lines of a text between words so that they have at most the given number of
// columns. The rest of a broken line is indented. A word that is longer stays whole.
func Wrap(text string, columns int) string {
	if columns <= 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		rest := strings.TrimRight(line, "\n")
		indent := strings.Repeat(" ", min(len(rest)-len(strings.TrimLeft(rest, " "))+4, columns/3))
		for prefix := ""; ; prefix = indent {
			head, tail := breakLine(rest, columns-len(prefix))
			b.WriteString(prefix + head)
			if rest = tail; rest == "" {
				break
			}
			b.WriteString("\n")
		}
		b.WriteString(line[len(strings.TrimRight(line, "\n")):])
	}
	return b.String()
}

// breakLine splits a line after the last word that fits into the columns, or after the first word
// if none does.
func breakLine(line string, columns int) (head, tail string) {
	if utf8.RuneCountInString(line) <= columns {
		return line, ""
	}
	start := len(line) - len(strings.TrimLeft(line, " "))
	at := -1
	for i, n := 0, 0; i < len(line); n++ {
		r, size := utf8.DecodeRuneInString(line[i:])
		if r == ' ' && i > start {
			if n > columns && at >= 0 {
				break
			}
			at = i
			if n > columns {
				break
			}
		}
		i += size
	}
	if at < 0 {
		return line, ""
	}
	return strings.TrimRight(line[:at], " "), strings.TrimLeft(line[at:], " ")
}
