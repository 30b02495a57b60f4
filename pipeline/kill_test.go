package pipeline_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tracesmith/tracesmith/internal/pipelinetest"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
)

// The test binary starts itself as a child that runs a batch and kills itself,
// without a chance to clean up, when it reaches a boundary for the n-th time.
const (
	childDir   = "PIPELINE_TEST_DIR"
	childPoint = "PIPELINE_TEST_POINT"
	childNth   = "PIPELINE_TEST_NTH"
	childNotes = "PIPELINE_TEST_NOTES" // path of the notes, if not beside the directory
	childCut   = "PIPELINE_TEST_CUT"   // mount point of a file system to cut the power of first
	childLazy  = "PIPELINE_TEST_LAZY"  // the engine does not sync its files
)

const killTasks = 3

func child() bool {
	dir := os.Getenv(childDir)
	if dir == "" {
		return false
	}
	nth, _ := strconv.Atoi(os.Getenv(childNth))
	h := newHarness(dir, killTasks)
	h.Config.Workers = 1
	h.Config.RunID = "fixed"
	h.NotesPath, h.Config.Unsynced = os.Getenv(childNotes), os.Getenv(childLazy) != ""
	var reached atomic.Int32
	h.ChangeDeps = func(d *pipeline.Deps) {
		d.Hooks = pipelinetest.Hooks(func(point string) {
			if h.NotesPath != "" {
				h.Note("at " + point)
			}
			if point == os.Getenv(childPoint) && int(reached.Add(1)) == nth {
				if at := os.Getenv(childCut); at != "" {
					if err := cutPower(at); err != nil {
						fmt.Println(err)
						os.Exit(1)
					}
				}
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		})
	}
	if _, err := h.Run(context.Background()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return true
}

// A run that is killed at any boundary and started again stages the same episodes as an
// undisturbed run, each once, and asks the model for no recorded reply again.
func TestKillAtEveryBoundary(t *testing.T) {
	t.Parallel()
	reference := newHarness(filepath.Join(t.TempDir(), "run"), killTasks)
	reference.Config.RunID = "fixed"
	reference.MustRun(t)
	want := slices.Sorted(maps.Keys(reference.Staged(t)))
	for _, point := range pipelinetest.Points {
		t.Run(point, func(t *testing.T) {
			h := newHarness(filepath.Join(t.TempDir(), "run"), killTasks)
			h.Config.RunID = "fixed"
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childDir+"="+h.Dir, childPoint+"="+point, childNth+"=2")
			out, err := cmd.CombinedOutput()
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
				t.Fatalf("the child was not killed: %v\n%s", err, out)
			}
			checkKilled(t, h)
			rep := h.MustRun(t)
			l := pipelinetest.Ledger(t, rep)
			if l.Missing != 0 || l.Reused+l.Outcomes["resolved"] != killTasks {
				t.Errorf("%+v", l)
			}
			staged := h.Staged(t)
			if got := slices.Sorted(maps.Keys(staged)); !slices.Equal(got, want) {
				t.Errorf("episodes %v, want %v", got, want)
			}
			for name, s := range staged {
				if len(s.Steps) != turns+2 || *s.Episode.Outcome != "resolved" {
					t.Errorf("%s: %d steps, %s", name, len(s.Steps), *s.Episode.Outcome)
				}
			}
			asked := map[string]int{}
			raw, err := os.ReadFile(h.NotesFile())
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(raw)) {
				if strings.HasPrefix(line, "ask ") {
					asked[line]++
				}
			}
			for line, n := range asked {
				if n != 1 {
					t.Errorf("%d times: %s", n, line)
				}
			}
			if len(asked) != killTasks*turns || rep.Calls.LostInFlight != 0 {
				t.Errorf("%d model calls, %d lost", len(asked), rep.Calls.LostInFlight)
			}
		})
	}
}

// checkKilled compares the status of a killed run with the staged episodes.
func checkKilled(t *testing.T, h *harness) {
	t.Helper()
	s, err := h.Status(t)
	if err != nil || s.Phase != rundir.Killed || s.Selected != killTasks || s.Done != len(h.Staged(t)) || s.Running != 0 {
		t.Errorf("status of a killed run: %+v, %v, %d staged", s, err, len(h.Staged(t)))
	}
}
