package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A local sandbox gets a new directory each time, and programs can print its path. That is not a
// divergence when a killed run is resumed.
func TestResumedLocalSandboxDoesNotDiverge(t *testing.T) {
	t.Parallel()
	tasks := t.TempDir()
	writeFiles(t, tasks, map[string]string{
		"one/task.yaml":   "instructions: Write fixed.txt.\nentrypoint: test -e fixed.txt\n",
		"one/repo/bad.py": "def fail():\n    raise ValueError('bad')\n\nfail()\n",
	})
	dir, config := writeConfig(t, strings.NewReplacer("TASKS", tasks, "run: {name: life", "sandbox: {kind: local}\nrun: {name: life", "- {tool: edit,", `- {tool: bash, arguments: {command: "pwd; python3 $PWD/bad.py; ls -d $PWD/*"}}
      - {tool: edit,`).Replace(twoTasksConfig))
	run := filepath.Join(dir, "run")
	args := []string{"run", "-c", config, "--run-dir", run}
	// The system prompt and the instructions are two steps, listdir and bash are two more.
	if code, out := tracesmith(t, "tracesmith-crash", append([]string{"logged-step", "4"}, args...)...); code != -int(syscall.SIGKILL) {
		t.Fatalf("the process was not killed: exit code %d\n%s", code, out)
	}
	if code, out := tracesmith(t, "tracesmith", args...); code != 0 {
		t.Fatalf("%d\n%s", code, out)
	}
	_, out := tracesmith(t, "tracesmith", "show", run, "--json")
	var shown struct {
		Episodes []struct {
			Diverged *int `json:"n_diverged"`
		}
	}
	if err := json.Unmarshal([]byte(out), &shown); err != nil || len(shown.Episodes) != 1 {
		t.Fatal(err, out)
	}
	_, text := tracesmith(t, "tracesmith", "show", run, "one")
	if n := shown.Episodes[0].Diverged; n == nil || *n != 0 || !strings.Contains(text, "ValueError: bad") || !strings.Contains(text, "/bad.py") {
		t.Errorf("diverged: %v\n%s", n, text)
	}
}
