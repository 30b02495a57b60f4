package observe

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// TerminalOf returns a Screen if w is a terminal that can redraw lines, and w otherwise. In CI, where
// nobody watches, the output of a terminal is a log.
func TerminalOf(w io.Writer) io.Writer {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("CI") != "" {
		return w
	}
	if _, _, err := terminalSize(f); err != nil {
		return w
	}
	return NewScreen(f, func() (int, int) {
		columns, rows, _ := terminalSize(f)
		return columns, rows
	})
}

// New returns a Live if w is a Screen, and a Plain otherwise.
func New(w io.Writer) Observer {
	if s, ok := w.(*Screen); ok {
		return NewLive(s)
	}
	return NewPlain(w)
}

// terminalSize returns an error if f is not a terminal.
func terminalSize(f *os.File) (columns, rows int, err error) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, err
	}
	return int(size.Col), int(size.Row), nil
}

// columnsOf returns the width of the terminal w, or 0 if w is not a terminal.
func columnsOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	columns, _, _ := terminalSize(f)
	return columns
}
