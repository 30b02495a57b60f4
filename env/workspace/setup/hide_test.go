package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// A task can hide a copy of its library that the interpreter brings along.
func TestHiddenPathsAreEmptyInSandboxes(t *testing.T) {
	b := open(t, "bubblewrap")
	python := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-m", "venv", "--without-pip", python).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	site, err := filepath.Glob(filepath.Join(python, "lib", "python3*", "site-packages"))
	if err != nil || len(site) != 1 {
		t.Fatal(site, err)
	}
	for _, name := range []string{"pip/_vendor/till/money.py", "pip/_vendor/other.py"} {
		file := filepath.Join(site[0], name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("running_sum = 0\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.spec.Python = filepath.Join(python, "bin", "python3")
	task := schemas.Task{InstanceID: "x", Setup: []string{"mkdir -p /opt/task/lib/$(ls /opt/task/lib)/site-packages/pip/_vendor/till"}}
	look := "find " + python + " /opt/task -path '*_vendor*' | sed 's/.*_vendor//' | sort | xargs"

	open, err := b.Prepare(t.Context(), b.driver, b.spec, task, tree("seven"))
	if err != nil {
		t.Fatal(err)
	}
	if got := b.output(open, look); strings.TrimSpace(got) != "/other.py /till /till /till/money.py" {
		t.Errorf("without hide, the sandbox has %q", got)
	}
	task.Hide = []string{"pip/_vendor/till", "no/such"}
	closed, err := b.Prepare(t.Context(), b.driver, b.spec, task, tree("seven"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time from the cache
		if got := b.output(closed, look); strings.TrimSpace(got) != "/other.py /till" {
			t.Errorf("with hide, the sandbox has %q", got)
		}
		if closed, err = b.Prepare(t.Context(), b.driver, b.spec, task, tree("seven")); err != nil {
			t.Fatal(err)
		}
	}

	task.Hide, b.spec.Python = []string{"json"}, ""
	if _, err := b.Prepare(t.Context(), b.driver, b.spec, task, tree("seven")); err == nil || !strings.Contains(err.Error(), "json is part of the system: give the task an interpreter outside of it") {
		t.Errorf("%v", err)
	}
}
