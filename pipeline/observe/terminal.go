package observe

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// New returns a Live if w is a terminal that can redraw a line, and a Plain otherwise.
func New(w io.Writer) Observer {
	if f, ok := w.(*os.File); ok && os.Getenv("TERM") != "dumb" {
		if _, err := columns(f); err == nil {
			return NewLive(w, func() int { n, _ := columns(f); return n })
		}
	}
	return NewPlain(w)
}

// columns returns the width of a terminal; an error if f is not a terminal.
func columns(f *os.File) (int, error) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, err
	}
	return int(size.Col), nil
}
