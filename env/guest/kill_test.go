package guest

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// startTagged starts a program with a tag, and kills and reaps it at the end of the test.
func startTagged(t *testing.T, tag uint64) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it is dead unless the sweep missed it
		_ = cmd.Wait()
	})
	if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: tag, Max: tag}, nil); err != nil {
		t.Fatal(err)
	}
}

// A sweep reports whether everything is dead: processes that start others as fast as it scans
// survive it.
func TestSweepReportsSurvivors(t *testing.T) {
	first := FirstTag()
	newest := first
	ownTags := func(tag uint64) bool { return tag <= first && tag >= newest }
	startTagged(t, newest)
	if !sweep(ownTags, spareNone) {
		t.Error("sweep reports that a killed process survived")
	}
	replaceKilled := func(tag uint64) bool {
		if tag == newest {
			newest--
			startTagged(t, newest)
		}
		return ownTags(tag)
	}
	newest--
	startTagged(t, newest)
	if sweep(replaceKilled, spareNone) {
		t.Error("sweep reports that all processes are dead although new ones keep starting")
	}
	if err := KillPrograms(first); err != nil {
		t.Error(err)
	}
}
