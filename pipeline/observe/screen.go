package observe

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// Screen writes to a terminal. It can keep some lines at the bottom, which it redraws; what is
// written meanwhile appears above them. It is safe for concurrent use.
type Screen struct {
	w    io.Writer
	size func() (columns, rows int)

	mu      sync.Mutex
	lines   []string // at the bottom of the terminal
	partial bool     // the last text that was written lacks its line break
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
	text := string(p)
	if len(s.lines) > 0 {
		columns, _ := s.size()
		text = wrap(text, columns)
	}
	out := s.erasure() + text
	s.partial = !strings.HasSuffix(text, "\n") && text != ""
	if !s.partial {
		out += strings.Join(s.lines, "\n")
	}
	if _, err := io.WriteString(s.w, out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Draw replaces the lines at the bottom. Draw() removes them. A line that is longer than the
// terminal is wide is cut off.
func (s *Screen) Draw(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	columns, _ := s.size()
	out := s.erasure()
	s.lines = make([]string, len(lines))
	for i, line := range lines {
		s.lines[i] = truncate(line, columns)
	}
	if !s.partial {
		out += strings.Join(s.lines, "\n")
	}
	fmt.Fprint(s.w, out)
}

// erasure returns the control codes that remove the lines at the bottom.
func (s *Screen) erasure() string {
	if len(s.lines) == 0 || s.partial {
		return ""
	}
	columns, _ := s.size()
	rows := 0
	for _, line := range s.lines { // a line takes several rows after the terminal has become narrower
		rows++
		if n := utf8.RuneCountInString(line); columns > 0 && n > columns {
			rows += (n - 1) / columns
		}
	}
	// Each row is cleared by itself: tmux adds what it clears from the top left corner to its history.
	return "\r\x1b[2K" + strings.Repeat("\x1b[1A\x1b[2K", rows-1)
}

// truncate shortens a line so that it does not wrap, and leaves three columns free: the terminal
// displays ^C there.
func truncate(line string, columns int) string {
	if columns <= 3 || utf8.RuneCountInString(line) <= columns-3 {
		return line
	}
	return string([]rune(line)[:columns-4]) + "…"
}

// wrap breaks the lines of a text between words so that they have at most the given number of
// columns. The rest of a broken line is indented. A word that is longer stays whole.
func wrap(text string, columns int) string {
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
