package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tracesmith/tracesmith/internal/suite"
)

// For each kind of sandbox, gc removes what a killed run left and keeps what a live run uses.
func TestEachDriverGCRemovesWhatAKilledRunLeft(t *testing.T) {
	kinds := []string{"bubblewrap", "local"}
	if suite.Docker.Value(t) != "" {
		kinds = append(kinds, "docker")
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			run := func(state string) (cmd *exec.Cmd, label string) {
				dir, config, label := sleepingRun(t)
				cmd, out := start(t, "run", "-c", config, "--sandbox", kind, "--run-dir", filepath.Join(dir, "run"))
				t.Cleanup(func() {
					_ = cmd.Process.Kill()
					_ = cmd.Wait()
					_ = exec.Command("tracesmith", "gc").Run() // the test must not leave anything behind either
					if t.Failed() {
						t.Logf("the %s run: %s", state, out)
					}
				})
				wait(t, "a sandbox of the "+state+" run", func() bool { return sandboxRuns(kind, label) })
				return cmd, label
			}
			killed, label := run("killed")
			living, livingLabel := run("living")
			if err := killed.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = killed.Wait()
			wait(t, "the killed run's programs end", func() bool { return kind == "docker" || sandboxes(label) == 0 })

			found := gc(t, 0, "--dry-run")
			if kinds := kindsOf(found, label); !slices.Contains(kinds, "directory") || (kind == "docker") != slices.Contains(kinds, "container") {
				t.Errorf("found %+v", found)
			}
			if len(kindsOf(gc(t, 0, "--older-than", "24h"), label)) > 0 {
				t.Error("--older-than 24h removed recent leftovers")
			}
			removed := gc(t, 0)
			for _, i := range removed {
				if i.Status != "removed" {
					t.Errorf("%+v", i)
				}
			}
			if listed, gone := kindsOf(found, label), kindsOf(removed, label); !slices.Equal(slices.Sorted(slices.Values(listed)), slices.Sorted(slices.Values(gone))) {
				t.Errorf("a dry run listed %v, but gc removed %v", listed, gone)
			}
			if left := kindsOf(gc(t, 0, "--dry-run"), label); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if err := living.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("the living run: %v", err)
			}
			wait(t, "a sandbox of the living run", func() bool { return sandboxRuns(kind, livingLabel) })
			dirs, err := filepath.Glob(filepath.Join(os.TempDir(), "tracesmith-*"))
			if want := map[bool]int{true: 2, false: 1}[kind == "local"]; err != nil || len(dirs) != want {
				t.Errorf("the living run has %v, %v; want %d", dirs, err, want)
			}
		})
	}
}

// sandboxRuns reports whether a sandbox with a label runs. For docker it asks the daemon, because
// the guest in a container clears its command line.
func sandboxRuns(kind, label string) bool {
	if kind != "docker" {
		return sandboxes(label) > 0
	}
	out, err := exec.Command("docker", "ps", "--format", `{{.Label "tracesmith.label"}}`).Output()
	return err == nil && strings.Contains(string(out), label)
}

type gcItem struct{ Kind, Name, What, Status string }

// gc runs tracesmith gc, which must exit with code want, and returns the leftovers in its report.
func gc(t *testing.T, want int, args ...string) []gcItem {
	t.Helper()
	code, out := tracesmith(t, "tracesmith", append([]string{"gc", "--json"}, args...)...)
	var report struct {
		Schema string
		Items  []gcItem
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != want || report.Schema != "tracesmith.gc/1" {
		t.Fatalf("exit %d, %v: %s", code, err, out)
	}
	return report.Items
}

// kindsOf lists the kinds of the leftovers that belong to this test, by label or directory.
func kindsOf(items []gcItem, label string) (kinds []string) {
	for _, i := range items {
		if strings.Contains(i.What, label) || strings.HasPrefix(i.Name, os.TempDir()) {
			kinds = append(kinds, i.Kind)
		}
	}
	return kinds
}
