//go:build !race

// The race detector would add its own memory to the measurement.

package engine

import (
	"bytes"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// memoryBound is how much memory the embedded engine may add to a process, in KiB.
const memoryBound = 40 << 10

// An embedded engine with a thousand jobs, while steps are being written, uses little memory. It
// is measured in a fresh process.
func TestEmbeddedEngineIsSmall(t *testing.T) {
	const alone = "ENGINE_TEST_ALONE"
	if os.Getenv(alone) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEmbeddedEngineIsSmall$", "-test.v")
		cmd.Env = append(os.Environ(), alone+"=1", "GOGC=100")
		out, err := cmd.CombinedOutput()
		if t.Logf("%s", out); err != nil {
			t.Error(err)
		}
		return
	}
	before := residentMemory(t)
	e := open(t, t.TempDir(), nil)
	enqueue(t, e, 1000)
	l := next(t, e)
	log, _, err := e.OpenLog(t.Context(), l.ID)
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if err := log.Append(t.Context(), "step", bytes.Repeat([]byte("x"), 8<<10)); err != nil {
			t.Fatal(err)
		}
	}
	debug.FreeOSMemory()
	grown := residentMemory(t) - before
	t.Logf("resident memory: %d KiB before, %d KiB more with the engine", before, grown)
	if grown > memoryBound {
		t.Errorf("the engine takes %d KiB, more than the limit of %d KiB", grown, memoryBound)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// residentMemory returns the resident memory of this process in KiB.
func residentMemory(t *testing.T) int {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "VmRSS:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
