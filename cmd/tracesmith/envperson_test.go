package main

import (
	"bufio"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// On a terminal, a person gets the prompt of agent human. At the end, the program shows the
// change and its verdict.
func TestEnvPromptsAPersonAtATerminal(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "tracesmith", "env", "--task", "stockroom")
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	var shown strings.Builder
	out := bufio.NewReader(tty)
	readUntil := func(mark string) {
		for before := shown.Len(); !strings.Contains(shown.String()[before:], mark); {
			c, err := out.ReadByte()
			if err != nil {
				t.Fatalf("%v before %q:\n%s", err, mark, shown.String())
			}
			shown.WriteByte(c)
		}
	}
	const prompt = "\n> "
	readUntil(prompt)
	write(t, tty, "bash comand=ls\r")
	readUntil(prompt)
	write(t, tty, `edit path=stockroom/store.py old_code="return dict(self._levels)" `+
		`new_code="return {article: dict(shelves) for article, shelves in self._levels.items()}"`+"\r")
	readUntil(prompt)
	write(t, tty, "\x04") // Ctrl-D
	readUntil("Resolved (verified_pass).")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"The evening report", "Enter a tool and its arguments", "^ unknown argument", "+        return {article:"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("%q was not shown:\n%s", want, shown.String())
		}
	}
}
