package builtin

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest/framing"
	"github.com/tracesmith/tracesmith/env/shellwords"
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
	dir   string // where its files are
	mark  uint64 // of the command under way
	nonce string // of its frames
	saved bool   // an earlier shell may have left its state
	tidy  bool   // the last command was stopped: bash has yet to tell of its dead
	last  int    // exit code of the last command: what $? is for the next one
}

// result of one command.
type result struct {
	out      framing.Output
	exit     int
	timedOut bool
	traced   bool   // set -x was on at the beginning or at the end
	ended    bool   // the shell is gone
	taken    bool   // another program has read some of what came back
	dir      string // with ended: where the next one begins
}

const (
	// shellGrace is what a stopped command and the shell have to come to an end.
	shellGrace = 400 * time.Millisecond
	// shellBegin is how long a shell may take to begin a command. It waits for
	// one, so that a longer time means that it is not what it was: an earlier
	// command forged its end, took its input or stopped it.
	shellBegin = 2 * time.Second
	// lookFirst is how long a command runs before it is asked for otherwise than by
	// waiting for its frame.
	lookFirst = time.Second
)

func (sh *shell) command() string { return sh.dir + "/command" }
func (sh *shell) state() string   { return sh.dir + "/state" }

// shellStart prepares a fresh bash: descriptor 198 is where output and frames
// go, the shell's own output goes nowhere. A frame's body is a JSON number, 100
// plus the exit code, and 300 more under "set -x", whose three digits are base64
// in four characters. The frame of an end is followed by the saving of the state.
// The functions use no variables of their own, which a command may have made
// read-only. A job that is killed before it begins runs the trap, too, in which it
// would save its own state and complain.
const shellStart = `exec 198>&1 >/dev/null 2>&1
shopt -s expand_aliases
readonly __tracesmith_letters=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/
__tracesmith_save() { { \builtin printf 'cd -- %%q\n: %%s %%s\n' "$PWD" "$1" "$2"; \builtin export -p; } >|%s; }
__tracesmith_frame() {
  \builtin set -- "$2" "$3" "$1" "${-//[^x]/}" "$1"
  \builtin set -- "$1" "$2" "$((100 + $3 + 300 * ${#4}))" "$5"
  \builtin set -- "$1" "$2" "$(( (48 + $3 / 100) << 16 | (48 + $3 / 10 %% 10) << 8 | 48 + $3 %% 10 ))" "$4"
  \builtin set -- "$@" "${__tracesmith_letters:$3 >> 18:1}" "${__tracesmith_letters:$3 >> 12 & 63:1}"
  \builtin printf '\e]7717;%%s;%%s;%%s;1;1;%%s\a' "$1" "$2" "$$" "$5$6${__tracesmith_letters:$3 >> 6 & 63:1}${__tracesmith_letters:$3 & 63:1}" >&198
  [[ $2 = 1 ]] || __tracesmith_save "$1" "$4"
}
__tracesmith_status() { \builtin return "$1"; }
readonly -f __tracesmith_save __tracesmith_frame __tracesmith_status
trap '[[ $BASHPID = $$ ]] && __tracesmith_save' EXIT
`

// input is what the shell reads to run what (a builtin with its arguments). It
// announces that it begins, so that a shell that had died before is told from one
// the command ended. A shell that cannot go on does nothing and is replaced: one
// that is restricted, or out of descriptors, or that takes "[[" and "{" for
// commands, as bash does after certain syntax errors. It is an "&&" list because
// "set -e" holds behind the last "&&".
func (sh *shell) input(what string) []byte {
	nonce, tidy := sh.conn.Expect(), ""
	sh.nonce = nonce
	if sh.tidy {
		sh.tidy, tidy = false, `\builtin jobs; `
	}
	return fmt.Appendf(nil, `%s[[ $- != *r* ]] && \builtin : </dev/null 3>&198 4>&3 5>&3 6>&3 && { `+
		`\__tracesmith_frame 0 %s 1; \__tracesmith_status %d; \builtin %s </dev/null >&198 2>&1 198>&-; \__tracesmith_frame "$?" %s 2; }`+"\n",
		tidy, nonce, sh.last, what, nonce)
}

// start opens the shell, in the state of the one before it if there was one.
func (sh *shell) start(ctx context.Context, s *env.Session) error {
	term, err := s.Sandbox.Open(ctx, env.TerminalSpec{
		Args: []string{"bash", "--noprofile", "--norc"}, Dir: s.Workdir,
		Env: []string{"PAGER=cat", "GIT_PAGER=cat", "TERM=dumb"},
	})
	if errors.Is(err, env.ErrNoProgram) {
		return tools.Mistake("This sandbox has no bash, so it cannot run commands. Use the other tools.")
	}
	if err != nil {
		return fmt.Errorf("opening a shell: %w", err)
	}
	script := fmt.Sprintf(shellStart, sh.state())
	if sh.saved {
		script += `\builtin . ` + sh.state() + "\n"
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
	sh.term, sh.conn, sh.tidy, sh.last = nil, nil, false, 0
	if err := term.Close(ctx); err != nil {
		return fmt.Errorf("closing the shell: %w", err)
	}
	return nil
}

// run executes a command. A shell found dead or not to be had is replaced first.
func (sh *shell) run(ctx context.Context, s *env.Session, command string, limit time.Duration) (res result, err error) {
	end := time.Now().Add(limit)
	ctx = env.AnswerBy(ctx, end)
	if sh.dir == "" {
		// The same name in every sandbox: a listing must not differ from run to run.
		sum := sha256.Sum256([]byte(s.Workdir))
		sh.dir = fmt.Sprintf("%s/.tracesmith-%x/shell", env.TempDirOf(s.Sandbox), sum[:4])
	}
	what := ". " + sh.command()
	if err := sh.write(ctx, s, command); errors.Is(err, env.ErrNoSpace) {
		what = "eval " + shellwords.Quote(command) // it may be what makes room
	} else if err != nil {
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
		last := fresh && !sh.saved
		bound := time.Until(end)
		if !last {
			bound = min(shellBegin, bound/2)
		}
		r, err := sh.begin(ctx, s, what, bound)
		if err != nil {
			return result{}, err
		}
		res.out = join(res.out, r.Output) // what background jobs have said
		res.timedOut, res.exit = r.TimedOut && last, r.ExitCode
		if r.Frame != nil {
			_, res.traced = exitCode(r.Frame)
			return sh.finish(ctx, s, res, command, time.Until(end))
		}
		if fresh && sh.saved { // a state that keeps a shell from beginning is dropped
			if err := sh.forget(ctx, s); err != nil {
				return result{}, err
			}
		}
		res.ended, res.dir = true, sh.savedDir(ctx, s)
		if err := sh.stop(ctx); err != nil || last {
			return res, err
		}
	}
	return res, nil
}

// write puts the command where the shell reads it. Where an earlier one left
// something else in the place of the shell's directory, that goes first; where one
// locked the directory for temporary files, it is opened.
func (sh *shell) write(ctx context.Context, s *env.Session, command string) error {
	write := func() error { return s.Sandbox.WriteFile(ctx, sh.command(), []byte(command+"\n"), 0o600) }
	err := write()
	if !errors.Is(err, env.ErrRefused) && !errors.Is(err, env.ErrNotExist) {
		return err
	}
	if err := sh.remove(ctx, s, path.Dir(sh.dir)); err != nil {
		return err
	}
	return write()
}

// forget drops the state that an earlier shell left.
func (sh *shell) forget(ctx context.Context, s *env.Session) error {
	sh.saved = false
	return sh.remove(ctx, s, sh.state())
}

func (*shell) remove(ctx context.Context, s *env.Session, name string) error {
	_, err := s.Sandbox.Run(ctx, env.Command{
		Args: []string{"sh", "-c", `[ -w "${1%/*}" ] || chmod u+rwx "${1%/*}"; [ -L "$1" ] || chmod -R u+rwx "$1"; rm -rf "$1"`, "sh", name}, Dir: "/", Timeout: 5 * time.Second,
	})
	return err
}

// begin has the shell run what and waits until it has begun.
func (sh *shell) begin(ctx context.Context, s *env.Session, what string, limit time.Duration) (framing.Reply, error) {
	if sh.term == nil {
		if err := sh.start(ctx, s); err != nil {
			return framing.Reply{}, err
		}
	}
	var err error
	if sh.mark, err = sh.term.Mark(ctx); err != nil {
		return framing.Reply{}, err
	}
	return sh.conn.Exchange(ctx, sh.input(what), limit)
}

// goesOn says whether bash may run another part of the command after one that
// was killed: after ";", a new line, "||" or a substitution, also a quoted one. It
// does not after "&&" and "|".
func goesOn(command string) bool {
	command = strings.TrimSpace(command)
	return strings.ContainsAny(command, ";\n`") || strings.Contains(command, "||") || strings.Contains(command, "$(")
}

// finish waits for the end of the command that has begun; res is what is known
// so far. Of a command that took too long nothing more may run: where killing
// what it started would let the shell go on with the next part, the shell ends too.
func (sh *shell) finish(ctx context.Context, s *env.Session, res result, command string, limit time.Duration) (result, error) {
	res.ended, res.dir = false, ""
	r, err := sh.await(ctx, s, limit)
	if err != nil {
		return result{}, err
	}
	res.out, res.timedOut = join(res.out, r.Output), r.TimedOut
	res.taken = !r.TimedOut && !r.Exited && r.Frame == nil
	if r.TimedOut && goesOn(command) {
		res.ended, res.dir = true, sh.savedDir(ctx, s)
		return res, sh.stop(ctx)
	}
	if r.TimedOut {
		if err := sh.term.KillChildren(ctx, sh.mark); err != nil {
			return result{}, err
		}
		if r, err = sh.conn.Await(ctx, shellGrace); err != nil {
			return result{}, err
		}
		res.out, sh.tidy = join(res.out, r.Output), true
	}
	if r.Frame != nil {
		code, traced := exitCode(r.Frame)
		res.exit, res.traced, sh.last = code, traced || res.traced, code
		return res, nil
	}
	res.exit, res.ended, res.dir = r.ExitCode, true, sh.savedDir(ctx, s)
	return res, sh.stop(ctx)
}

// await waits for the end of the command. A program that has made the shell's pipe
// readable may take the frame; so from time to time it looks at the state the shell
// saves after each command. The reply has no frame then, and the exit code.
func (sh *shell) await(ctx context.Context, s *env.Session, limit time.Duration) (r framing.Reply, err error) {
	end := time.Now().Add(limit)
	for pause := lookFirst; ; pause *= 2 {
		left := time.Until(end)
		part, err := sh.conn.Await(ctx, min(pause, left))
		part.Output = join(r.Output, part.Output)
		if r = part; err != nil || !r.TimedOut {
			return r, err
		}
		if _, code := sh.readState(ctx, s); code >= 0 {
			// The frame comes before the state: what has come of it is read now.
			part, err := sh.conn.Await(ctx, 0)
			part.Output = join(r.Output, part.Output)
			if r = part; err != nil || !r.TimedOut {
				return r, err
			}
			sh.conn.Ended()
			r.TimedOut, r.ExitCode = false, code
			return r, nil
		}
		if pause >= left {
			return r, nil
		}
	}
}

// savedDir is the directory a new shell begins in.
func (sh *shell) savedDir(ctx context.Context, s *env.Session) string {
	if dir, _ := sh.readState(ctx, s); sh.saved && dir != "" {
		return dir
	}
	return s.Workdir
}

// readState reads what the shell saved last: its directory and, if that was at the
// end of the command under way, its exit code; else -1.
func (sh *shell) readState(ctx context.Context, s *env.Session) (dir string, code int) {
	state, _, err := s.Sandbox.ReadFile(ctx, sh.state(), 64<<10)
	first, rest, _ := strings.Cut(string(state), "\n")
	second, _, _ := strings.Cut(rest, "\n")
	dir, ok := strings.CutPrefix(first, "cd -- ")
	if err != nil || !ok {
		return "", -1
	}
	text, ok := strings.CutPrefix(second, ": "+sh.nonce+" ")
	if code, err = strconv.Atoi(text); !ok || err != nil || code < 0 || code > 255 {
		return dir, -1
	}
	return dir, code
}

// exitCode reads a frame: 100 plus the exit code, 300 more where "set -x" is on.
func exitCode(frame []byte) (code int, traced bool) {
	n, err := strconv.Atoi(string(frame))
	if traced = n >= 400; traced {
		n -= 300
	}
	if err != nil || n < 100 || n > 355 {
		return 1, false // not ours: the command forged a frame
	}
	return n - 100, traced
}

// join appends the output of the same command that came after a time-out.
func join(a, b framing.Output) framing.Output {
	head := len(a.Bytes) + b.Head
	if a.Cut() > 0 {
		head = a.Head
	}
	return framing.Output{Bytes: append(a.Bytes, b.Bytes...), Head: head, Total: a.Total + b.Total}
}
