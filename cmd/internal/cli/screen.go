package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// screen is where a command prints text for people: standard output, perhaps through a pager.
type screen struct {
	io.Writer
	width int // columns of the terminal; 0 if standard output is not a terminal
	color bool
}

// newScreen returns standard output as a screen.
func newScreen(s *State) *screen {
	w := &screen{Writer: s.Stdout}
	if !s.StdoutTTY {
		return w
	}
	w.width = 80
	if f, ok := s.Stdout.(*os.File); ok {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			w.width = int(size.Col)
		}
	}
	w.color = s.Getenv("NO_COLOR") == "" && s.Getenv("TERM") != "dumb"
	return w
}

// SGR parameters of the colors, which every terminal has.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// paint gives text a color, if the screen has colors.
func (w *screen) paint(color, text string) string {
	if !w.color || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[m"
}

// safe replaces characters of recorded text with which it could control a terminal or change the order of
// what the terminal shows. Other output gets the text as it is.
func (w *screen) safe(text string) string {
	if w.width == 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// pagerFlags is the flag of commands whose output goes through a pager on a terminal.
type pagerFlags struct{ off bool }

// Add defines --no-pager.
func (f *pagerFlags) Add(c *cobra.Command) {
	c.Flags().BoolVar(&f.off, "no-pager", false, "on a terminal, print at once instead of through $PAGER (less)")
}

// command returns the pager; nil if the output goes to standard output directly.
func (f *pagerFlags) command(s *State) *exec.Cmd {
	pager := s.Getenv("PAGER")
	switch {
	case f.off || !s.StdoutTTY || s.Getenv("NO_PAGER") != "" || s.Getenv("TERM") == "dumb" || pager == "cat" || slices.Contains(s.Environ, "PAGER="):
		return nil
	case pager == "":
		if _, err := exec.LookPath("less"); err != nil {
			return nil
		}
		pager = "less"
	}
	cmd := exec.Command("sh", "-c", pager)
	cmd.Stdout, cmd.Stderr, cmd.Env = s.Stdout, s.Stderr, s.Environ
	if s.Getenv("LESS") == "" {
		cmd.Env = append(slices.Clone(s.Environ), "LESS=FRX") // quit if it fits the screen, keep colors, leave the text on the screen
	}
	return cmd
}

// noSuchCommand is the exit code of a shell that does not find a command.
const noSuchCommand = 127

// print calls text with a screen. On a terminal, what text writes goes through the pager. text must have no
// other effect, because print calls it again if the pager does not exist.
func (f *pagerFlags) print(s *State, text func(w *screen)) error {
	w := newScreen(s)
	direct := &stickyWriter{w: s.Stdout}
	w.Writer = direct
	if cmd := f.command(s); cmd == nil || !page(s, cmd, w, text) {
		w.Writer = direct
		text(w)
	}
	if direct.err != nil {
		return fmt.Errorf("writing output: %w", direct.err)
	}
	return nil
}

// page calls text with the screen in the pager cmd. It returns false if the pager does not exist.
func page(s *State, cmd *exec.Cmd, w *screen, text func(w *screen)) bool {
	in, err := cmd.StdinPipe()
	if err != nil {
		return false
	}
	s.paging.Store(true) // Ctrl-C is a command of the pager
	defer s.paging.Store(false)
	if err := cmd.Start(); err != nil {
		return false
	}
	w.Writer = &stickyWriter{w: in} // an error means that the user has seen enough
	text(w)
	_ = in.Close()
	exit, failed := errors.AsType[*exec.ExitError](cmd.Wait())
	return !failed || exit.ExitCode() != noSuchCommand
}

// stickyWriter writes nothing after the first error, which it keeps.
type stickyWriter struct {
	w   io.Writer
	err error
}

func (s *stickyWriter) Write(b []byte) (int, error) {
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
	return len(b), s.err
}
