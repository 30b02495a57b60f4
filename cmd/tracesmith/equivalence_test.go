package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/tracesmith/tracesmith/agents/canonical"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/suite"
)

const (
	equivalenceScript  = "testdata/equivalence/script.jsonl"
	equivalenceProject = "testdata/equivalence/project"
)

// scriptRun holds the answers of `tracesmith env` to the script, line by line.
type scriptRun struct {
	name    string
	answers [][]byte
}

// runScript runs the script in tracesmith env with the sandbox that args choose.
func runScript(t *testing.T, name string, args ...string) (scriptRun, error) {
	script, err := os.Open(equivalenceScript)
	if err != nil {
		return scriptRun{}, err
	}
	defer script.Close()
	cmd := exec.CommandContext(t.Context(), "tracesmith", append([]string{
		"env", "--path", equivalenceProject, "--entrypoint", "python3 -m pytest -q tests",
		"--instructions", "The total of a book changes when money moves.",
	}, args...)...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = script, &stderr
	out, err := cmd.Output()
	if err != nil {
		return scriptRun{}, fmt.Errorf("%s: %w\n%s", name, err, stderr.String())
	}
	return scriptRun{name, bytes.Split(bytes.TrimSuffix(out, []byte("\n")), []byte("\n"))}, nil
}

// scriptLines returns the lines of the script, and checks that it calls every tool.
func scriptLines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(equivalenceScript)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	tools := map[string]int{}
	for _, l := range lines {
		var o struct{ Op, Tool string }
		if err := json.Unmarshal([]byte(l), &o); err != nil {
			t.Fatal(err)
		}
		tools[o.Tool]++
	}
	for _, tool := range []string{"bash", "view", "grep", "listdir", "edit", "pdb", "eval", "submit"} {
		if tools[tool] == 0 {
			t.Errorf("the script never calls %s", tool)
		}
	}
	if len(lines) < 80 {
		t.Errorf("the script has %d steps, want at least 80", len(lines))
	}
	return lines
}

// difference holds the two answers to one line of the script, counted from 0.
type difference struct {
	line int
	a, b any
}

// differences returns the steps whose answers differ after the rules have been applied.
func differences(t *testing.T, a, b scriptRun, rules ...canonical.Rule) (out []difference) {
	t.Helper()
	for i := range a.answers {
		answerA, err := envtest.Canonical(a.answers[i], rules...)
		if err != nil {
			t.Fatal(err)
		}
		answerB, err := envtest.Canonical(b.answers[i], rules...)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(answerA, answerB) {
			out = append(out, difference{i, answerA, answerB})
		}
	}
	return out
}

// checkSame reports the differences that remain after all rules, and logs which rules the two
// runs needed.
func checkSame(t *testing.T, a, b scriptRun) {
	t.Helper()
	lines := scriptLines(t)
	if len(a.answers) != len(lines) || len(b.answers) != len(lines) {
		t.Fatalf("%d answers over %s, %d over %s, to %d steps", len(a.answers), a.name, len(b.answers), b.name, len(lines))
	}
	for _, d := range differences(t, a, b) {
		t.Errorf("%s and %s differ: step %d, %s\n%s", a.name, b.name, d.line+1, lines[d.line], cmp.Diff(d.a, d.b))
	}
	var needed []string
	for i, r := range canonical.Rules {
		if n := len(differences(t, a, b, slices.Delete(slices.Clone(canonical.Rules), i, i+1)...)); n > 0 {
			needed = append(needed, fmt.Sprintf("%s (%d steps)", r.Name, n))
		}
	}
	t.Logf("%s and %s, %d steps: rules needed: %s", a.name, b.name, len(a.answers), strings.Join(needed, ", "))
	if len(needed) < 4 {
		t.Errorf("only these rules were needed: %v", needed)
	}
}

// The same calls get the same answers in two bubblewrap sandboxes that run at the same time, and in a
// container with Python from the same Debian packages.
func TestDockerEnvAnswersAlike(t *testing.T) {
	suite.Docker.Require(t)
	var first, second scriptRun
	var g errgroup.Group
	g.Go(func() (err error) { first, err = runScript(t, "bubblewrap 1", "--sandbox", "bubblewrap"); return err })
	g.Go(func() (err error) { second, err = runScript(t, "bubblewrap 2", "--sandbox", "bubblewrap"); return err })
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	container, err := runScript(t, "docker", "--image", "tracesmith-base:latest")
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, first, second)
	checkSame(t, first, container)
}
