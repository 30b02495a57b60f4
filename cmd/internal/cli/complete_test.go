package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The test asks for completions as the completion script of a shell does.
func TestShellsCompleteNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nmodels:\n  scout: {model: a}\n  smith: {model: b}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ words, want string }{
		{"run -p agent.kind=se", "agent.kind=seeker"},
		{"run -p agent.ki", "agent.kind="},
		{"run -c " + file + " -p llm.model=s", "llm.model=scout llm.model=smith"},
		{"run -c " + file + " -p agent.with.solver_model=sm", "agent.with.solver_model=smith"},
		{"run -c " + file + ".none -p llm.model=s", ""},
		{"run --sandbox bub", "bubblewrap"},
		{"tasks show sto", "stockroom"},
		{"tasks verify --source builtin way", "waymark"},
		{"run -c quick", "quickstart"},
		{"export sft-tr", "sft-trl"},
		{"export sft-trl x --mask sp", "split-rows"},
		{"export sft-trl x --phase s", "seek solve"},
	} {
		var out bytes.Buffer
		s := &State{Args: append([]string{"__complete"}, strings.Fields(c.words)...), Stdout: &out, Stderr: &bytes.Buffer{}}
		Main(t.Context(), s, Tracesmith)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		var got []string
		for _, l := range lines[:len(lines)-1] { // the last line is cobra's directive
			name, _, _ := strings.Cut(l, "\t")
			got = append(got, name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.words, got, c.want)
		}
	}
}
