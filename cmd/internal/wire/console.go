package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/tracesmith/tracesmith/agents"
)

// console is an agents.Console, with line editing, history and completion if its input
// is a terminal. It serves all episodes of a process.
type console struct {
	io.Writer
	lines    *bufio.Reader // input that is not a terminal
	tty      *os.File
	terminal *term.Terminal
	ctx      context.Context // of the current ReadLine
}

// maxLine bounds a line, in bytes.
const maxLine = 1 << 20

// NewConsole returns the console of a person who types at in and reads out.
func NewConsole(in io.Reader, out io.Writer) agents.Console {
	c := &console{Writer: out}
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		c.tty = f
		c.terminal = term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{keyReader{c}, out}, "")
		return c
	}
	c.lines = bufio.NewReader(cancelableReader{c, in})
	return c
}

// ReadLine implements agents.Console.
func (c *console) ReadLine(ctx context.Context, prompt string, complete func(string) (int, []string)) (string, error) {
	c.ctx = ctx
	if c.tty == nil {
		return c.nextLine()
	}
	state, err := term.MakeRaw(int(c.tty.Fd()))
	if err != nil {
		return "", fmt.Errorf("switching the terminal to raw mode: %w", err)
	}
	defer func() { _ = term.Restore(int(c.tty.Fd()), state) }()
	if width, height, err := term.GetSize(int(c.tty.Fd())); err == nil && width > 0 {
		_ = c.terminal.SetSize(width, height) // the width only decides how long lines wrap
	}
	c.terminal.SetPrompt(prompt)
	c.terminal.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		from, options := complete(line[:pos])
		common := commonPrefix(options)
		if len(options) > 1 && common == line[from:pos] {
			fmt.Fprintf(c.terminal, "%s\n", strings.Join(options, " "))
		}
		if len(options) == 0 {
			return line, pos, true
		}
		return line[:from] + common + line[pos:], from + len(common), true
	}
	line, err := c.terminal.ReadLine()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return line, err
}

// nextLine returns a line of input that is not a terminal. The last line may lack a newline.
func (c *console) nextLine() (string, error) {
	var line []byte
	for {
		part, err := c.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return "", fmt.Errorf("a line is longer than %d bytes", maxLine)
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return strings.TrimRight(string(line), "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
	}
}

// commonPrefix returns the longest prefix of all options.
func commonPrefix(options []string) string {
	if len(options) == 0 {
		return ""
	}
	common := options[0]
	for _, o := range options[1:] {
		for !strings.HasPrefix(o, common) {
			common = common[:len(common)-1]
		}
	}
	return common
}

// keyReader reads the terminal in raw mode. In this mode the terminal does not turn Ctrl-C
// into SIGINT, so keyReader sends the signal.
type keyReader struct{ c *console }

// ctrlC is the byte that the terminal delivers for Ctrl-C.
const ctrlC = 3

func (k keyReader) Read(p []byte) (int, error) {
	n, err := (cancelableReader{k.c, k.c.tty}).Read(p)
	if strings.IndexByte(string(p[:n]), ctrlC) >= 0 {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			return 0, fmt.Errorf("sending SIGINT: %w", err)
		}
		<-k.c.ctx.Done()
	}
	return n, err
}

// cancelableReader reads until the context of the current line ends. A read of a file
// cannot be interrupted, so it polls the file and reads only when there is input.
type cancelableReader struct {
	c  *console
	in io.Reader
}

func (r cancelableReader) Read(p []byte) (int, error) {
	f, ok := r.in.(*os.File)
	for ok {
		if r.c.ctx.Err() != nil {
			return 0, context.Cause(r.c.ctx)
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}, 100)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return 0, fmt.Errorf("waiting for input: %w", err)
		}
		if ready > 0 {
			break
		}
	}
	return r.in.Read(p)
}
