package builtin

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

// sh returns the text of a bash call that must succeed.
func (b *toolSession) sh(command string) string {
	b.t.Helper()
	return b.ok("bash", args{"command": command})
}

// All calls share one shell.
// This test proves row WC18 of docs/internals/parity.md.
func TestWC18BashKeepsItsState(t *testing.T) {
	b := newToolSession(t, files{"sub/a.txt": "A\n"})
	for _, step := range []struct{ command, want string }{
		{"pwd", "/testbed\n"},
		{"cd sub; plain=1; export SHOWN=2; f() { echo \"f $1\"; }; alias say='echo said'; set -o pipefail; shopt -s nullglob", "[the command succeeded and printed nothing]\n"},
		{"pwd; echo $plain $SHOWN; f x; say it; env | grep ^SHOWN; set -o | grep pipefail; echo *.none", "/testbed/sub\n1 2\nf x\nsaid it\nSHOWN=2\npipefail       \ton\n\n"},
		{"cat a.txt; cat <<'E'\n$x `y` \"z\nE\necho é漢", "A\n$x `y` \"z\né漢\n"},
		{"read x; echo \"[$x]\"; cat", "[]\n"},
		{"printf 'no newline'", "no newline"},
		{"sh -c 'exit 7' || true; false || (exit 7) || :", "[the command succeeded and printed nothing]\n"},
		{"echo $?", "0\n"},
		{"umask 077; set -- one two; OLD=$PWD; cd ..; echo $1 $#", "one 2\n"},
		{"umask; echo $2; cd $OLD; set --", "0077\ntwo\n"},
		{"exec >/dev/null 2>&1; echo lost", "[the command succeeded and printed nothing]\n"},
		{"echo back", "back\n"},
		{"set -x; :", "+ :\n"},
		{"echo traced; set +x", "+ echo traced\ntraced\n+ set +x\n"},
		{"set -x; echo $(echo in); set +x", "++ echo in\n+ echo in\nin\n+ set +x\n"},
		{"echo '++ x'; (exit 3); true", "++ x\n"},
		{"set -v", "[the command succeeded and printed nothing]\n"},
		{"set +v", "set +v\n"},
		{"IFS=0123456789; set -u", "[the command succeeded and printed nothing]\n"},
		{"echo still", "still\n"},
		{"unset IFS; echo() { builtin echo mine; }; printf() { builtin echo mine; }", "[the command succeeded and printed nothing]\n"},
		{"echo x", "mine\n"},
	} {
		if got := b.sh(step.command); got != step.want {
			t.Errorf("%s\n got %q\nwant %q", step.command, got, step.want)
		}
	}
}

func TestBashExitCodes(t *testing.T) {
	b := newToolSession(t, files{"sub/a": "", "a.sh": "#!/bin/sh\nexit 124\n"})
	for _, c := range []struct {
		command string
		code    int
		says    string
	}{
		{"false", 1, "[exit code 1]\n"},
		{"echo out; (exit 77)", 77, "out\n[exit code 77]\n"},
		{"nosuchcommand", 127, "bash: line 1: nosuchcommand: command not found\n[exit code 127]\n"},
		{"./a.sh", 124, "[exit code 124]\n"},
		{"echo \"unclosed", 2, "bash: line 1: unexpected EOF"},
		{"cat <<E\nabc", 0, "abc\n"},
		{"for i in 1 2; do", 2, "syntax error"},
		{"return 5", 5, "[exit code 5]\n"},
		{"sh -c 'kill -9 $$'", 137, "bash: line 1: Killed                  sh -c 'kill -9 $$'\n[exit code 137]\n"},
		{"echo }; echo ); '", 2, "syntax error"},
	} {
		o := b.call("bash", args{"command": c.command})
		if o.ExitCode == nil || *o.ExitCode != c.code || !strings.Contains(o.Text, c.says) {
			t.Errorf("%s: %+v (exit %v), want %d and %q", c.command, o.Text, o.ExitCode, c.code, c.says)
		}
		if class := map[bool]string{true: schemas.ErrNonzeroExit}[c.code != 0]; o.ErrorClass != class || o.IsError != (c.code != 0) {
			t.Errorf("%s: class %q", c.command, o.ErrorClass)
		}
		if got := b.sh("echo alive"); got != "alive\n" {
			t.Fatalf("after %s the shell says %q", c.command, got)
		}
	}
}

func TestBashExitEndsOnlyTheShell(t *testing.T) {
	b := newToolSession(t, files{"sub/a": "", "q'd/a": ""})
	b.sh("export KEPT='a b'; lost=1; cd sub")
	o := b.call("bash", args{"command": `cd "../q'd"; export NEW=2; echo bye; exit 3`})
	if *o.ExitCode != 3 || !strings.HasPrefix(o.Text, "bye\n[exit code 3]\n[the shell exited") {
		t.Errorf("exit 3: %+v", o)
	}
	if got := b.sh(`echo "$PWD $KEPT $NEW [$lost]"; cd ..`); got != "/testbed/q'd a b 2 []\n" {
		t.Errorf("new shell: %q", got)
	}
	o = b.call("bash", args{"command": "exec echo replaced"})
	if !strings.HasPrefix(o.Text, "replaced\n[the shell exited") || o.IsError {
		t.Errorf("exec: %+v", o)
	}
	o = b.call("bash", args{"command": "kill -9 $$"})
	if *o.ExitCode != 137 || !strings.Contains(o.Text, "the shell exited") {
		t.Errorf("kill: %+v", o)
	}
	b.sh("cd sub; echo $$ >/tmp/pid")
	// The call returns before the shell has saved its state.
	kill := "until grep -qx 'cd -- /testbed/sub' /tmp/.tracesmith-*/shell/state; do sleep 0.01; done; kill -9 $(cat /tmp/pid)"
	if _, err := b.Sandbox.Run(t.Context(), env.Command{Args: []string{"sh", "-c", kill}}); err != nil {
		t.Fatal(err)
	}
	if got := b.sh("pwd"); got != "/testbed/sub\n" {
		t.Errorf("after a shell killed between calls: %q", got)
	}
}

func TestBashTimeout(t *testing.T) {
	for _, c := range []struct {
		command string
		keeps   bool // the shell survives
	}{
		{"echo begun && sleep 100", true},
		{"echo begun && trap '' TERM INT HUP && python3 stubborn.py", true},
		{"echo begun && setsid sh -c 'sleep 100 & sleep 100'", true},
		{"echo begun; sleep 100; echo next >>after", false},
		{"echo begun && sleep 100 || echo next >>after", false},
		{"echo begun && echo $(sleep 100) >>after", false},
		{"echo begun\n(sleep 100)\necho next >>after", false},
		{"echo begun; while :; do :; done", false},
		{"echo begun; while :; do sleep 1000; done", false},
		{"echo begun; exec sleep 100", false},
	} {
		t.Run(c.command, func(t *testing.T) {
			t.Parallel()
			b := newToolSession(t, files{"stubborn.py": "import signal, time\nfor s in (1, 2, 15):\n    signal.signal(s, signal.SIG_IGN)\ntime.sleep(100)\n"})
			b.sh("sleep 3000 & echo $! >/tmp/earlier; x=1")
			began := time.Now()
			o := b.call("bash", args{"command": c.command, "timeout": 4})
			if took := time.Since(began); took > time.Minute { // without the timeout, each command would run longer
				t.Errorf("took %s", took)
			}
			if !o.TimedOut || o.ErrorClass != schemas.ErrTimeout || o.ExitCode != nil || !strings.HasPrefix(o.Text, "begun\n") ||
				!strings.Contains(o.Text, "longer than 4s") {
				t.Errorf("%+v", o)
			}
			if exited := strings.Contains(o.Text, "the shell exited"); exited == c.keeps {
				t.Errorf("shell exited: %v", exited)
			}
			if got := b.sh("cat after 2>&1 || :"); !strings.Contains(got, "No such file") {
				t.Errorf("the command continued after its timeout: %q", got)
			}
			if c.keeps {
				if got := b.sh("echo $x; kill -0 $(cat /tmp/earlier) && echo there"); got != "1\nthere\n" {
					t.Errorf("afterwards: %q", got)
				}
			}
			if got := b.call("bash", args{"command": "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"}); strings.Contains(got.Text, "sleep 100 ") || c.keeps != strings.Contains(got.Text, "sleep 3000 ") {
				t.Errorf("processes that remain: %s", got.Text)
			}
		})
	}
}

func TestBashBackgroundJobs(t *testing.T) {
	b := newToolSession(t, files{})
	o := b.call("bash", args{"command": "sleep 200 & { while [ ! -e /testbed/go ]; do :; done; echo late; } &"})
	if o.IsError || o.TimedOut {
		t.Errorf("a background job held the call: %+v", o)
	}
	if got := b.sh("touch go; wait %2; jobs | wc -l"); !strings.Contains(got, "late\n") || !strings.Contains(got, "1\n") {
		t.Errorf("got %q", got)
	}
}

// A job that is killed before it starts is still a copy of the shell. It must not print
// anything or overwrite the shell's saved state.
func TestBashJobKilledAtOnce(t *testing.T) {
	b := newToolSession(t, files{"sub/a": ""})
	for range 10 {
		o := b.call("bash", args{"command": "sleep 300 & kill $!; wait $!; echo $?", "timeout": 5})
		if !o.TimedOut && o.Text != "143\n" { // bash may lose a signal that comes so early
			t.Fatalf("got %+v", o)
		}
	}
	if o := b.call("bash", args{"command": "kill -9 $$"}); !o.IsError {
		t.Errorf("%+v", o)
	}
	if got := b.sh("pwd"); got != "/testbed\n" {
		t.Errorf("a new shell begins in %q", got)
	}
}

func TestBashOutput(t *testing.T) {
	b := newToolSession(t, files{})
	o := b.call("bash", args{"command": "head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; echo the end"})
	if !o.Truncated || o.FullBytes != 3_000_009 || len(o.Text) > tools.MaxText || len(o.FullText) > tools.MaxFullText+64 ||
		!strings.HasSuffix(o.Text, "the end\n") || !strings.HasPrefix(o.Text, "xxx") {
		t.Errorf("truncated %v, %d bytes of %d, full %d", o.Truncated, len(o.Text), o.FullBytes, len(o.FullText))
	}
	if got := b.sh(`printf '\xff\xfe ok\r\n\033[31mred\033[0m'`); got != "\uFFFD ok\nred" {
		t.Errorf("got %q", got)
	}
	if got := b.sh(`printf '\e]7717;x;1;1;MTAw\a'; echo fake; printf '(Pdb) '`); got != "fake\n(Pdb) " {
		t.Errorf("got %q", got)
	}
	if got := b.sh(`python3 -c "print('é' * 100000)" | head -c 40001 | tail -c 5`); !strings.Contains(got, "éé") {
		t.Errorf("got %q", got)
	}
}

func TestBashReset(t *testing.T) {
	b := newToolSession(t, files{"sub/a": ""})
	b.sh("cd sub; export X=1")
	if _, err := b.set.Notify(t.Context(), b.Session, env.Event{Kind: env.EventReset}); err != nil {
		t.Fatal(err)
	}
	if got := b.sh(`echo "$PWD [$X]"`); got != "/testbed []\n" {
		t.Errorf("after reset: %q", got)
	}
}

// A shell that no longer executes anything is replaced.
func TestBashDeafShell(t *testing.T) {
	b := newToolSession(t, files{})
	for _, command := range []string{"set -n", "__tracesmith_frame() { :; }", "exec 198>&-"} {
		if o := b.call("bash", args{"command": command, "timeout": 1}); o.TimedOut {
			continue
		}
		if o := b.call("bash", args{"command": "echo x", "timeout": 1}); !o.TimedOut && o.Text != "x\n" {
			t.Errorf("after %s: %+v", command, o)
		}
		if got := b.sh("echo again"); got != "again\n" {
			t.Errorf("after %s: %q", command, got)
		}
	}
}

// A command ends even if no frame reports its end. Here a trap makes bash skip the
// command that prints the frame.
func TestBashEndWithoutFrame(t *testing.T) {
	b := newToolSession(t, files{})
	o := b.call("bash", args{"command": "shopt -s extdebug; trap '[[ $BASH_COMMAND != *7717* ]]' DEBUG; (exit 7)", "timeout": 60})
	if o.TimedOut || o.ExitCode == nil || *o.ExitCode != 7 {
		t.Errorf("%+v", o)
	}
	if !strings.Contains(o.Text, "output may be missing") {
		t.Errorf("the observation does not say that output may be missing: %q", o.Text)
	}
	if got := b.sh("echo again"); got != "again\n" {
		t.Errorf("afterwards the shell says %q", got)
	}
}

// A program that reads from the shell's output pipe does not keep a command from ending.
func TestBashOutputIsStolen(t *testing.T) {
	const thief = `import os
os.chmod("/proc/self/fd/1", 0o600)
pipe = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
while True:
    try:
        os.read(pipe, 65536)
    except BlockingIOError:
        pass
`
	for range 3 {
		b := newToolSession(t, files{"thief.py": thief})
		o := b.call("bash", args{"command": "python3 thief.py & python3 thief.py & sleep 0.5; (exit 7)", "timeout": 60})
		if o.TimedOut || o.ExitCode == nil || *o.ExitCode != 7 {
			t.Errorf("%+v", o)
		}
	}
}

// The next command runs even if a command replaces or removes the shell's own files.
func TestShellFilesAreTampered(t *testing.T) {
	b := newToolSession(t, files{})
	for _, command := range []string{
		"rm -rf ${BASH_SOURCE%/shell/*}; mkdir -p ${BASH_SOURCE%/shell/*}; ln -s /etc ${BASH_SOURCE%/*}",
		"rm -rf ${BASH_SOURCE%/shell/*}; ln -s /etc ${BASH_SOURCE%/shell/*}",
		"rm -rf ${BASH_SOURCE%/shell/*}; touch ${BASH_SOURCE%/shell/*}",
		"rm -rf ${BASH_SOURCE%/*}; mkfifo ${BASH_SOURCE%/*}",
		"rm -f ${BASH_SOURCE%/*}/command; mkfifo ${BASH_SOURCE%/*}/command",
		"rm -f ${BASH_SOURCE%/*}/command; mkdir ${BASH_SOURCE%/*}/command",
		"chmod 000 ${BASH_SOURCE%/shell/*}",
		"chmod 500 ${BASH_SOURCE%/*}",
		"rm -rf ${BASH_SOURCE%/shell/*} /tmp/*",
		"echo exit >${BASH_SOURCE%/*}/state; kill -9 $$",
		"rm ${BASH_SOURCE%/*}/state; mkdir ${BASH_SOURCE%/*}/state; kill -9 $$",
	} {
		b.call("bash", args{"command": command})
		if got := b.ok("bash", args{"command": "echo alive"}); got != "alive\n" {
			t.Errorf("after %s: %q", command, got)
		}
	}
}

func TestShellStateThatHangs(t *testing.T) {
	b := newToolSession(t, files{})
	b.call("bash", args{"command": "rm -f ${BASH_SOURCE%/*}/state; mkfifo ${BASH_SOURCE%/*}/state; kill -9 $$"})
	if got := b.ok("bash", args{"command": "echo alive"}); got != "alive\n" {
		t.Errorf("got %q", got)
	}
}

func TestB5BashArguments(t *testing.T) {
	b := newToolSession(t, files{})
	for _, a := range []args{{"command": "echo x"}, {"command": "echo x", "timeout": nil}, {"command": "echo x", "timeout": "5"}, {"command": "echo x", "timeout": 5.0}, {"command": "echo x", "timeout": ""}} {
		if got := b.ok("bash", a); got != "x\n" {
			t.Errorf("%v: %q", a, got)
		}
	}
	b.refused("bash", args{"command": " \n"}, "empty")
	for _, a := range []args{{}, {"command": nil}, {"command": "x", "timeout": "soon"}, {"command": "x", "timeout": 1.5}, {"command": []string{"ls"}}} {
		if o := b.call("bash", a); o.ErrorClass != schemas.ErrBadArguments {
			t.Errorf("%v: %+v", a, o)
		}
	}
}

// The observation of a failing command is its output and its exit code. A timeout out of
// bounds becomes the nearest bound.
func TestB6BashAnswers(t *testing.T) {
	b := newToolSession(t, files{})
	for command, want := range map[string]string{
		"true":                                 "[the command succeeded and printed nothing]\n",
		"echo out; echo err >&2; exit 0":       "out\nerr\n[the shell exited; the next command runs in a new shell in /testbed, which keeps exported variables but no other variables, functions, aliases, shell options or background jobs]\n",
		"echo out; echo err >&2; (exit 3)":     "out\nerr\n[exit code 3]\n",
		"(exit 3)":                             "[exit code 3]\n",
		"cat <<'E' | tr a-z A-Z\n'q' \"d\"\nE": "'Q' \"D\"\n",
		`printf 'a\tb\n\n\nend'`:               "a\tb\n\n\nend",
		"echo 'é漢 \\'\"'\"":                    "é漢 \\'\n",
	} {
		if got := b.call("bash", args{"command": command}).Text; got != want {
			t.Errorf("%s\n got %q\nwant %q", command, got, want)
		}
	}
	for given, want := range map[int]time.Duration{9999: time.Hour, 0: time.Second, -3: time.Second, 3600: time.Hour, 7: 7 * time.Second} {
		if got := timeout(b.Session, &given); got != want {
			t.Errorf("%d is %s, want %s", given, got, want)
		}
	}
	if got := timeout(b.Session, nil); got != b.CommandTimeout {
		t.Errorf("no timeout is %s", got)
	}
}

// The next command sees the exit code of the last one as $?.
func TestBashCarriesTheExitCode(t *testing.T) {
	b := newToolSession(t, files{})
	for _, step := range []struct{ command, want string }{
		{"(exit 42)", "[exit code 42]\n"}, {"echo $?", "42\n"}, {"echo $?", "0\n"}, {"false\nset -u", "[the command succeeded and printed nothing]\n"}, {"echo $?", "0\n"},
		{"nosuchcommand", "bash: line 1: nosuchcommand: command not found\n[exit code 127]\n"}, {"[ $? = 127 ] && echo kept", "kept\n"},
		{"false", "[exit code 1]\n"}, {"echo $?; set -e", "1\n"}, {"echo on", "on\n"},
	} {
		if got := b.call("bash", args{"command": step.command}).Text; got != step.want {
			t.Errorf("%s: %q, want %q", step.command, got, step.want)
		}
	}
}

// The call does not wait for a background job. The job survives the timeout of a later
// command, jobs lists it, and it ends with the session.
func TestBashJobsEndWithTheSession(t *testing.T) {
	b := newToolSession(t, files{})
	if got := b.sh("sleep 411 & echo $!"); strings.TrimSpace(got) == "" {
		t.Errorf("got %q", got)
	}
	if o := b.call("bash", args{"command": "sleep 100", "timeout": 4}); !o.TimedOut {
		t.Errorf("%+v", o)
	}
	if got := b.sh("jobs"); !strings.Contains(got, "Running") || !strings.Contains(got, "sleep 411") {
		t.Errorf("jobs: %q", got)
	}
	b.reset()
	if got := b.sh("jobs; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'slee[p] 411 ' || :"); got != "0\n" {
		t.Errorf("after the reset: %q", got)
	}
}

// Without bash in the sandbox, the tool says so, and the other tools still work.
func TestNoBashInTheSandbox(t *testing.T) {
	b := newToolSession(t, files{"a.py": "x\n"})
	b.Sandbox = bashless{b.Sandbox}
	b.refused("bash", args{"command": "ls"}, "This sandbox has no bash")
	b.refused("bash", args{"command": "ls"}, "Use the other tools")
	b.ok("view", args{"path": "a.py"})
}

type bashless struct{ env.Sandbox }

func (s bashless) Open(ctx context.Context, t env.TerminalSpec) (env.Terminal, error) {
	if t.Args[0] == "bash" {
		t.Args = append([]string{"no-such-program"}, t.Args[1:]...)
	}
	return s.Sandbox.Open(ctx, t)
}
