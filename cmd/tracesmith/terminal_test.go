package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// onTerminal runs tracesmith on a terminal of 80 columns and returns what it shows. Each text of dialog is
// one that the program shows, followed by what the user then types. env is added to the environment.
func onTerminal(t *testing.T, env []string, dialog [][2]string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // for a dialog that does not go on
	defer cancel()
	cmd := exec.CommandContext(ctx, "tracesmith", args...)
	cmd.Env = append(os.Environ(), append([]string{"TERM=xterm", "LESS=", "PAGER=", "NO_COLOR="}, env...)...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	var shown strings.Builder
	read := 0 // of what was shown before the last answer
	for out := bufio.NewReader(tty); ; {
		c, err := out.ReadByte()
		if err != nil { // EIO: the program has ended
			break
		}
		shown.WriteByte(c)
		if len(dialog) > 0 && strings.Contains(shown.String()[read:], dialog[0][0]) {
			write(t, tty, dialog[0][1])
			read, dialog = shown.Len(), dialog[1:]
		}
	}
	if err := cmd.Wait(); err != nil || len(dialog) > 0 {
		t.Errorf("%v: %v, not shown: %q\n%s", args, err, dialog, shown.String())
	}
	return strings.ReplaceAll(shown.String(), "\r\n", "\n")
}

// On a terminal, lists and episodes go through the pager, with colors. In a pipe, they do not.
func TestShowOnATerminal(t *testing.T) {
	t.Parallel()
	dir, config := writeConfig(t, "tasks: {source: builtin, ids: [stockroom]}\nagent: {kind: noop}\n")
	run, paged := filepath.Join(dir, "run"), filepath.Join(dir, "paged")
	if code, out := tracesmith(t, "tracesmith", "run", "-c", config, "--run-dir", run); code != 0 {
		t.Fatal(out)
	}
	pager := "PAGER=cat > " + paged
	list := func(env ...string) string { return onTerminal(t, env, nil, "show", run) }
	wasPaged := func() string {
		body, _ := os.ReadFile(paged)
		_ = os.Remove(paged)
		return string(body)
	}
	if shown := list(pager); shown != "" {
		t.Errorf("the list does not go to the pager but to the terminal:\n%s", shown)
	}
	if body := wasPaged(); !strings.Contains(body, "stockroom#0  \x1b[33munresolved\x1b[m") {
		t.Errorf("the pager got %q", body)
	}
	for name, env := range map[string][]string{"NO_PAGER": {pager, "NO_PAGER=1"}, "empty": {"PAGER="}, "dumb": {pager, "TERM=dumb"}, "missing": {"PAGER=no-such-pager-anywhere"}} {
		if shown := list(env...); !strings.Contains(shown, "stockroom#0") || wasPaged() != "" {
			t.Errorf("%s: %s", name, shown)
		}
	}
	if shown := onTerminal(t, []string{pager}, nil, "show", run, "--no-pager"); !strings.Contains(shown, "\x1b[33munresolved") || wasPaged() != "" {
		t.Errorf("--no-pager: %s", shown)
	}
	if list(pager, "NO_COLOR=1"); strings.Contains(wasPaged(), "\x1b") {
		t.Error("NO_COLOR: there are colors")
	}
	if onTerminal(t, []string{pager}, nil, "show", run, "stockroom"); !strings.Contains(wasPaged(), "\x1b[1mepisode ") {
		t.Error("an episode does not go to the pager")
	}
	if onTerminal(t, []string{pager}, nil, "stats", run); !strings.Contains(wasPaged(), "1 episode of 1 task") {
		t.Error("stats does not go to the pager")
	}
	// A user who closes the pager early sees no error.
	if shown := list("PAGER=true"); shown != "" {
		t.Errorf("a closed pager: %s", shown)
	}
	walked := onTerminal(t, []string{pager}, [][2]string{{"step 0 of 1> ", "1\r"}, {"step 1 of 1> ", "q\r"}}, "show", run, "stockroom", "--interactive")
	if !strings.Contains(walked, "── 0 · user") || !strings.Contains(walked, "── 1 · submit") || wasPaged() != "" {
		t.Errorf("one step at a time:\n%s", walked)
	}
}
