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

// shell is one long-lived bash. It sources each command from a file, with input, output
// and error redirected, so that nothing in the command, such as an unclosed quote or a
// redirection, can affect the stream of the frames. After each command the shell saves its
// directory and exported variables. If the shell ends, the next one loads them.
type shell struct {
	term  env.Terminal
	conn  *framing.Conn
	dir   string // directory of the shell's own files
	mark  uint64 // value of Terminal.Mark from before the running command
	nonce string // nonce of the running command's frames
	saved bool   // an earlier shell may have saved its state
	// unreported means that the last command was killed and that bash has not printed its
	// notice about that yet.
	unreported bool
	last       int // exit code of the last command, which the next command sees as $?
}

// result describes the end of one command.
type result struct {
	out      framing.Output
	exit     int
	timedOut bool
	traced   bool   // set -x was on at the beginning or at the end
	exited   bool   // the shell has ended
	stolen   bool   // another program has read some of the shell's output
	dir      string // directory of the next shell; set only if exited
}

const (
	// shellGrace bounds how long the shell may take to report the end of a killed command.
	shellGrace = 400 * time.Millisecond
	// shellBegin bounds how long a shell may take to begin a command. A shell that needs longer
	// is broken: an earlier command forged its end, consumed the shell's input, or stopped the
	// shell.
	shellBegin = 2 * time.Second
	// firstPoll is the time after which await first reads the state file in addition to
	// waiting for the frame.
	firstPoll = time.Second
)

func (sh *shell) command() string { return sh.dir + "/command" }
func (sh *shell) state() string   { return sh.dir + "/state" }

// shellStart prepares a new bash. Output and frames go to descriptor 198; the shell's own
// output is discarded. The body of a frame is a JSON number of three digits, encoded in base64
// as four characters: 100 plus the exit code, and 300 more under "set -x". After the frame of
// a command's end, the shell saves its state. The functions use no variables, because a
// command may have made any of them read-only. The trap checks the process ID because a job
// that is killed before it begins also runs the trap, and would save its own state.
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

// input returns the line to write to the shell so that it runs a builtin with arguments. The shell
// first sends a frame, which distinguishes a shell that was already dead from a shell that the
// command ended. A shell that is restricted, out of descriptors, or that reads "[[" and "{" as commands
// (as bash does after certain syntax errors) sends no frame, and run replaces it. The input is
// an "&&" list because "set -e" applies only to the last command of such a list.
func (sh *shell) input(builtin string) []byte {
	nonce, report := sh.conn.Expect(), ""
	sh.nonce = nonce
	if sh.unreported {
		sh.unreported, report = false, `\builtin jobs; `
	}
	return fmt.Appendf(nil, `%s[[ $- != *r* ]] && \builtin : </dev/null 3>&198 4>&3 5>&3 6>&3 && { `+
		`\__tracesmith_frame 0 %s 1; \__tracesmith_status %d; \builtin %s </dev/null >&198 2>&1 198>&-; \__tracesmith_frame "$?" %s 2; }`+"\n",
		report, nonce, sh.last, builtin, nonce)
}

// start starts a shell with the state of the previous one, if there was one.
func (sh *shell) start(ctx context.Context, s *env.Session) error {
	term, err := s.Sandbox.Open(ctx, env.TerminalSpec{
		Args: []string{"bash", "--noprofile", "--norc"}, Dir: s.Workdir,
		Env: []string{"PAGER=cat", "GIT_PAGER=cat", "TERM=dumb"},
	})
	if errors.Is(err, env.ErrNoProgram) {
		return tools.NewUserError("This sandbox has no bash, so it cannot run commands. Use the other tools.")
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

// stop ends the shell, if there is one.
func (sh *shell) stop(ctx context.Context) error {
	if sh.term == nil {
		return nil
	}
	term := sh.term
	sh.term, sh.conn, sh.unreported, sh.last = nil, nil, false, 0
	if err := term.Close(ctx); err != nil {
		return fmt.Errorf("closing the shell: %w", err)
	}
	return nil
}

// run executes a command. It first replaces a shell that is dead or does not start.
func (sh *shell) run(ctx context.Context, s *env.Session, command string, limit time.Duration) (res result, err error) {
	end := time.Now().Add(limit)
	ctx = env.AnswerBy(ctx, end)
	if sh.dir == "" {
		// The name is the same in every sandbox, so that listings do not differ between runs.
		sum := sha256.Sum256([]byte(s.Workdir))
		sh.dir = fmt.Sprintf("%s/.tracesmith-%x/shell", env.TempDirOf(s.Sandbox), sum[:4])
	}
	builtin := ". " + sh.command()
	if err := sh.write(ctx, s, command); errors.Is(err, env.ErrNoSpace) {
		builtin = "eval " + shellwords.Quote(command) // the command may free space
	} else if err != nil {
		return result{}, err
	}
	defer func() {
		if err != nil { // the state of the shell is unknown
			detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			err = errors.Join(err, sh.stop(detached))
		}
	}()
	for range 3 { // up to three shells: the current one, a new one with the saved state, a new one without it
		fresh := sh.term == nil
		last := fresh && !sh.saved
		bound := time.Until(end)
		if !last {
			bound = min(shellBegin, bound/2)
		}
		r, err := sh.begin(ctx, s, builtin, bound)
		if err != nil {
			return result{}, err
		}
		res.out = join(res.out, r.Output) // output of background jobs
		res.timedOut, res.exit = r.TimedOut && last, r.ExitCode
		if r.Frame != nil {
			_, res.traced = exitCode(r.Frame)
			return sh.finish(ctx, s, res, command, time.Until(end))
		}
		if fresh && sh.saved { // the saved state keeps the shell from starting
			if err := sh.forget(ctx, s); err != nil {
				return result{}, err
			}
		}
		res.exited, res.dir = true, sh.savedDir(ctx, s)
		if err := sh.stop(ctx); err != nil || last {
			return res, err
		}
	}
	return res, nil
}

// write writes the file that the shell sources. If an earlier command has replaced the
// shell's directory or changed its permissions, write restores it.
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

// forget removes the state that an earlier shell saved.
func (sh *shell) forget(ctx context.Context, s *env.Session) error {
	sh.saved = false
	return sh.remove(ctx, s, sh.state())
}

// remove deletes a file or directory, even if an earlier command has made it read-only.
func (*shell) remove(ctx context.Context, s *env.Session, name string) error {
	_, err := s.Sandbox.Run(ctx, env.Command{
		Args: []string{"sh", "-c", `[ -w "${1%/*}" ] || chmod u+rwx "${1%/*}"; [ -L "$1" ] || chmod -R u+rwx "$1"; rm -rf "$1"`, "sh", name}, Dir: "/", Timeout: 5 * time.Second,
	})
	return err
}

// begin makes the shell run a builtin and waits for the frame of its start.
func (sh *shell) begin(ctx context.Context, s *env.Session, builtin string, limit time.Duration) (framing.Reply, error) {
	if sh.term == nil {
		if err := sh.start(ctx, s); err != nil {
			return framing.Reply{}, err
		}
	}
	var err error
	if sh.mark, err = sh.term.Mark(ctx); err != nil {
		return framing.Reply{}, err
	}
	return sh.conn.Exchange(ctx, sh.input(builtin), limit)
}

// mayContinue reports whether bash may run another part of the command after a part is
// killed. It does so after ";", a newline, "||" and a substitution, but not after "&&" and
// "|". mayContinue ignores quoting.
func mayContinue(command string) bool {
	command = strings.TrimSpace(command)
	return strings.ContainsAny(command, ";\n`") || strings.Contains(command, "||") || strings.Contains(command, "$(")
}

// finish waits for the end of the running command and completes res. At the time limit it
// kills the processes of the command, and also the shell if that might run another part of
// the command.
func (sh *shell) finish(ctx context.Context, s *env.Session, res result, command string, limit time.Duration) (result, error) {
	res.exited, res.dir = false, ""
	r, err := sh.await(ctx, s, limit)
	if err != nil {
		return result{}, err
	}
	res.out, res.timedOut = join(res.out, r.Output), r.TimedOut
	res.stolen = !r.TimedOut && !r.Exited && r.Frame == nil
	if r.TimedOut && mayContinue(command) {
		res.exited, res.dir = true, sh.savedDir(ctx, s)
		return res, sh.stop(ctx)
	}
	if r.TimedOut {
		if err := sh.term.KillChildren(ctx, sh.mark); err != nil {
			return result{}, err
		}
		if r, err = sh.conn.Await(ctx, shellGrace); err != nil {
			return result{}, err
		}
		res.out, sh.unreported = join(res.out, r.Output), true
	}
	if r.Frame != nil {
		code, traced := exitCode(r.Frame)
		res.exit, res.traced, sh.last = code, traced || res.traced, code
		return res, nil
	}
	res.exit, res.exited, res.dir = r.ExitCode, true, sh.savedDir(ctx, s)
	return res, sh.stop(ctx)
}

// await waits for the end of the command. Another program may read the frame from the
// shell's pipe, so await also polls the state file that the shell saves after each command.
// If it learns of the end from this file, the reply has the exit code but no frame.
func (sh *shell) await(ctx context.Context, s *env.Session, limit time.Duration) (r framing.Reply, err error) {
	end := time.Now().Add(limit)
	for pause := firstPoll; ; pause *= 2 {
		remaining := time.Until(end)
		part, err := sh.conn.Await(ctx, min(pause, remaining))
		part.Output = join(r.Output, part.Output)
		if r = part; err != nil || !r.TimedOut {
			return r, err
		}
		if _, code := sh.readState(ctx, s); code >= 0 {
			// The shell sends the frame before it saves the state, so the frame has arrived
			// unless another program read it.
			part, err := sh.conn.Await(ctx, 0)
			part.Output = join(r.Output, part.Output)
			if r = part; err != nil || !r.TimedOut {
				return r, err
			}
			sh.conn.MarkEnded()
			r.TimedOut, r.ExitCode = false, code
			return r, nil
		}
		if pause >= remaining {
			return r, nil
		}
	}
}

// savedDir returns the directory in which a new shell begins.
func (sh *shell) savedDir(ctx context.Context, s *env.Session) string {
	if dir, _ := sh.readState(ctx, s); sh.saved && dir != "" {
		return dir
	}
	return s.Workdir
}

// readState returns the directory that the shell saved last. code is the exit code of the
// running command if the shell saved its state after it, and -1 otherwise.
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

// exitCode decodes the body of a frame; see shellStart.
func exitCode(frame []byte) (code int, traced bool) {
	n, err := strconv.Atoi(string(frame))
	if traced = n >= 400; traced {
		n -= 300
	}
	if err != nil || n < 100 || n > 355 {
		return 1, false // the command forged a frame
	}
	return n - 100, traced
}

// join appends later output of the same command.
func join(a, b framing.Output) framing.Output {
	head := len(a.Bytes) + b.Head
	if a.Cut() > 0 {
		head = a.Head
	}
	return framing.Output{Bytes: append(a.Bytes, b.Bytes...), Head: head, Total: a.Total + b.Total}
}
