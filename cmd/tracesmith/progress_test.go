package main

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms/mock"
)

// silentServer starts a model server whose second answer never comes.
func silentServer(t *testing.T) *mocktest.Server {
	t.Helper()
	silent := mocktest.Text("never sent")
	silent.Fault = &mock.Fault{Kind: "stall_start"}
	srv := mocktest.Listen(mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{mocktest.Tool("listdir", nil), silent}}}})
	t.Cleanup(srv.Close)
	return srv
}

const silentConfig = `version: 1
run: {name: silent, workers: 1}
tasks: {source: builtin, ids: [stockroom]}
agent: {kind: react, max_steps: 40}
llm: {model: m, timeout: 5m}
`

// On a terminal, a run shows what each worker does. The messages of both interrupts are on lines
// of their own, and the status says what they started.
func TestRunShowsItsWorkersOnATerminal(t *testing.T) {
	t.Parallel()
	dir, config := writeConfig(t, silentConfig)
	cmd := exec.CommandContext(t.Context(), "tracesmith", "run", "-c", config, "--run-dir", filepath.Join(dir, "run"), "-p", "llm.base_url="+silentServer(t).URL)
	cmd.Env = append(cmd.Environ(), "TERM=xterm", "CI=")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	var shown strings.Builder
	out := bufio.NewReader(tty)
	readUntil := func(mark string) {
		t.Helper()
		for before := shown.Len(); !strings.Contains(shown.String()[before:], mark); {
			c, err := out.ReadByte()
			if err != nil {
				t.Fatalf("%v before %q:\n%s", err, mark, shown.String())
			}
			shown.WriteByte(c)
		}
	}
	readUntil("░░░░  0/1 done, 1 running, ")
	readUntil("    stockroom#0  turn 2/40  last listdir  ")
	readUntil("  m 127.0.0.1:")
	readUntil(": 1 call running")
	status := ""
	wait(t, "the status shows the running episode", func() bool {
		_, status = tracesmith(t, "tracesmith", "status", filepath.Join(dir, "run"))
		return strings.Contains(status, "\n    stockroom#0  turn 2/40  last listdir  ") && strings.Contains(status, "  waits for model ")
	})
	for _, want := range []string{"working, last sign of life ", "1 selected = 0 reused + 0 ran + 1 running + 0 waiting + 0 missing\n"} {
		if !strings.Contains(status, want) {
			t.Errorf("%q is not in:\n%s", want, status)
		}
	}
	write(t, tty, "\x03") // Ctrl-C
	readUntil("\x1b[2Kstopping: running episodes finish, no new ones start (interrupt again to cancel\r\n    them)\r\n")
	readUntil("  0/1 done, stopping, 1 under way, ")
	write(t, tty, "\x03")
	readUntil("\x1b[2Kcanceling running episodes: closing sandboxes (interrupt again to stop at once)\r\n")
	readUntil("INTERRUPTED in")
	readUntil("1 cancelled")
	_ = cmd.Wait() // the exit code is checked below
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d", code)
	}
}
