package builtin

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/framing"
	"github.com/tracesmith/tracesmith/tools"
)

// shell is one long-lived bash. A command is written to a file and sourced with
// its input, output and error redirected, so that nothing in it, an unclosed
// quote or a redirection of the shell, can touch the stream on which the frames
// come. After each command the shell saves its directory and exported
// variables; a shell that ended is replaced by one that reads them.
type shell struct {
	term  env.Terminal
	conn  *framing.Conn
	mark  uint64 // of the command under way
	saved bool   // an earlier shell may have left its state
}

// result of one command.
type result struct {
	out      framing.Output
	exit     int
	timedOut bool
	ended    bool   // the shell is gone
	dir      string // with ended: where the next one begins
}

const (
	shellDir     = "/tmp/.tracesmith/shell"
	shellCommand = shellDir + "/command"
	shellState   = shellDir + "/state"
	// shellGrace is what a stopped command and the shell have to come to an end.
	shellGrace = 400 * time.Millisecond
)

// shellStart prepares a fresh bash: descriptor 198 is where output and frames
// go, the shell's own output goes nowhere. A frame's body is a JSON number, 100
// plus the exit code, whose three digits are base64 in four characters.
const shellStart = `exec 198>&1 >/dev/null 2>&1
shopt -s expand_aliases
__tracesmith_save() { { \builtin printf 'cd -- %q\n' "$PWD"; \builtin export -p; } >|` + shellState + `; }
__tracesmith_frame() {
  \builtin local "n=$((100 + $1))" a=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/ v
  v=$(( (48 + n / 100) << 16 | (48 + n / 10 % 10) << 8 | 48 + n % 10 ))
  \builtin printf '\e]7717;%s;%s;%s;1;1;%s\a' "$2" "$3" "$$" "${a:v>>18:1}${a:v>>12&63:1}${a:v>>6&63:1}${a:v&63:1}" >&198
}
readonly -f __tracesmith_save __tracesmith_frame
trap __tracesmith_save EXIT
`

// input is what the shell reads for one command: it announces that it begins,
// so that a shell that had died before is told from one the command ended.
func (sh *shell) input() []byte {
	nonce := sh.conn.Expect()
	return fmt.Appendf(nil, `__tracesmith_frame 0 %s 1; \builtin . %s </dev/null >&198 2>&1 198>&-; `+
		`__tracesmith_frame "$?" %s 2; __tracesmith_save`+"\n", nonce, shellCommand, nonce)
}

// start opens the shell, in the state of the one before it if there was one.
func (sh *shell) start(ctx context.Context, s *env.Session) error {
	term, err := s.Sandbox.Open(ctx, env.TerminalSpec{
		Args: []string{"bash", "--noprofile", "--norc"}, Dir: s.Workdir,
		Env: []string{"PAGER=cat", "GIT_PAGER=cat", "TERM=dumb"},
	})
	if err != nil {
		return fmt.Errorf("opening a shell: %w", err)
	}
	script := shellStart
	if sh.saved {
		script += `\builtin . ` + shellState + "\n"
	}
	sh.term, sh.saved = term, true
	sh.conn = framing.NewConn(term, tools.MaxFullText)
	if err := term.Write(ctx, []byte(script)); err != nil {
		return fmt.Errorf("starting the shell: %w", err)
	}
	return nil
}

func (sh *shell) stop(ctx context.Context) error {
	if sh.term == nil {
		return nil
	}
	term := sh.term
	sh.term, sh.conn = nil, nil
	if err := term.Close(ctx); err != nil {
		return fmt.Errorf("closing the shell: %w", err)
	}
	return nil
}

// run executes a command. A shell found dead, killed between two commands, is
// replaced first.
func (sh *shell) run(ctx context.Context, s *env.Session, command string, limit time.Duration) (res result, err error) {
	end := time.Now().Add(limit)
	if err := writeCommand(ctx, s, command); err != nil {
		return result{}, err
	}
	defer func() {
		if err != nil { // cancelled in its middle: nothing more can be said to this shell
			detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			err = errors.Join(err, sh.stop(detached))
		}
	}()
	for range 3 { // a shell found dead, one with the state it left, one without
		fresh := sh.term == nil
		r, err := sh.begin(ctx, s, time.Until(end))
		if err != nil {
			return result{}, err
		}
		res.out = join(res.out, r.Output) // what background jobs have said
		res.timedOut, res.exit = r.TimedOut, r.ExitCode
		if r.Frame != nil {
			return sh.finish(ctx, s, res, time.Until(end))
		}
		sh.saved = sh.saved && !fresh // a state that keeps a shell from beginning is dropped
		res.ended, res.dir = true, sh.savedDir(ctx, s)
		if err := sh.stop(ctx); err != nil || r.TimedOut {
			return res, err
		}
	}
	return res, nil
}

// writeCommand puts the command where the shell reads it. Where an earlier one
// left something else in the place of the shell's directory, that goes first.
func writeCommand(ctx context.Context, s *env.Session, command string) error {
	write := func() error { return s.Sandbox.WriteFile(ctx, shellCommand, []byte(command+"\n"), 0o600) }
	err := write()
	if !errors.Is(err, env.ErrRefused) && !errors.Is(err, env.ErrNotExist) {
		return err
	}
	home := path.Dir(shellDir)
	_, err = s.Sandbox.Run(ctx, env.Command{
		Args: []string{"sh", "-c", `chmod -R u+rwx "$1"; rm -rf "$1"`, "sh", home}, Dir: "/", Timeout: 5 * time.Second,
	})
	return errors.Join(err, write())
}

// begin sends the command file to the shell and waits until it has begun.
func (sh *shell) begin(ctx context.Context, s *env.Session, limit time.Duration) (framing.Reply, error) {
	if sh.term == nil {
		if err := sh.start(ctx, s); err != nil {
			return framing.Reply{}, err
		}
	}
	var err error
	if sh.mark, err = sh.term.Mark(ctx); err != nil {
		return framing.Reply{}, err
	}
	return sh.conn.Exchange(ctx, sh.input(), limit)
}

// finish waits for the end of the command that has begun; res is what is known
// so far.
func (sh *shell) finish(ctx context.Context, s *env.Session, res result, limit time.Duration) (result, error) {
	res.ended, res.dir = false, ""
	r, err := sh.conn.Await(ctx, limit)
	if err != nil {
		return result{}, err
	}
	res.out, res.timedOut = join(res.out, r.Output), r.TimedOut
	if r.TimedOut {
		if err := sh.term.KillChildren(ctx, sh.mark); err != nil {
			return result{}, err
		}
		if r, err = sh.conn.Await(ctx, shellGrace); err != nil {
			return result{}, err
		}
		res.out = join(res.out, r.Output)
	}
	if r.Frame != nil {
		res.exit = exitCode(r.Frame)
		return res, nil
	}
	res.exit, res.ended, res.dir = r.ExitCode, true, sh.savedDir(ctx, s)
	return res, sh.stop(ctx)
}

// savedDir is the directory a new shell begins in.
func (sh *shell) savedDir(ctx context.Context, s *env.Session) string {
	if !sh.saved {
		return s.Workdir
	}
	state, _, err := s.Sandbox.ReadFile(ctx, shellState, 64<<10)
	first, _, _ := strings.Cut(string(state), "\n")
	if dir, ok := strings.CutPrefix(first, "cd -- "); err == nil && ok {
		return dir
	}
	return s.Workdir
}

// exitCode reads a frame: 100 plus the exit code.
func exitCode(frame []byte) int {
	n, err := strconv.Atoi(string(frame))
	if err != nil || n < 100 || n > 355 {
		return 1 // not ours: the command forged a frame
	}
	return n - 100
}

// join appends the output of the same command that came after a time-out.
func join(a, b framing.Output) framing.Output {
	head := len(a.Bytes) + b.Head
	if a.Cut() > 0 {
		head = a.Head
	}
	return framing.Output{Bytes: append(a.Bytes, b.Bytes...), Head: head, Total: a.Total + b.Total}
}
