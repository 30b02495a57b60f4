package wire

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/schemas"
)

// A task of a clone whose origin is a local path, a bundle or a private machine has the
// name of the directory, and no path.
func TestRepositoryNamesContainNoPathOfAMachine(t *testing.T) {
	clone := func(t *testing.T, config string) schemas.Task {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "home", "alice", "pkg")
		for name, text := range map[string]string{"pkg.py": "x = 1\n", ".git/config": config, ".git/HEAD": "ref: refs/heads/main\n"} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		r, err := readRepository(dir, schemas.Task{})
		if err != nil {
			t.Fatal(err)
		}
		return taskfile.Complete(r.Task, "synth")
	}
	for _, url := range []string{
		"/home/alice/work/pkg", "../alice/pkg", "~/alice/pkg", "file:///home/alice/pkg", `C:\\Users\\alice\\pkg`, "/home/alice/pkg.bundle", "alice/pkg", "alice",
		"alice@box:work/pkg.git", "git@example.com:/home/alice/pkg.git", "ssh://alice@example.com/home/alice/pkg", `"/home/alice/my work/pkg"`, "/home/my work/alice/pkg",
	} {
		task := clone(t, "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = "+url+"\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n")
		line, err := json.Marshal(task)
		if err != nil {
			t.Fatal(err)
		}
		if task.Repo != "local/pkg" || strings.Contains(string(line), "alice") {
			t.Errorf("%s: %s", url, line)
		}
	}
	for config, want := range map[string]string{
		"[remote \"origin\"]\n\turl = https://alice:secret@github.com/Owner/pkg.git\n":                                   "https://github.com/Owner/pkg.git",
		"[remote \"origin\"]\n\tpushurl = /home/alice/pkg\n\tfetch = x\n\turl = git@github.com:owner/pkg\n":              "git@github.com:owner/pkg",
		"[remote \"fork\"]\n\turl = /home/alice/pkg\n[remote \"origin\"]\n\turl = https://github.com/owner/pkg # main\n": "",
	} {
		if task := clone(t, config); want != "" && (task.RepoSource != want || task.Repo != "github.com/owner/pkg") || strings.Contains(task.Repo+task.RepoSource, "alice") {
			t.Errorf("%s: %q, %q", config, task.Repo, task.RepoSource)
		}
	}
}

// A checkout may have a name like a module.
func TestDirectoryOfRepositoriesIsNoRepository(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for _, name := range []string{"bool.py/setup.cfg", "calc/calc.py"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		want = append(want, filepath.Dir(file))
	}
	if got, _, err := repositoriesIn(dir); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}
