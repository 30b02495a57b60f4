package guest

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// tagged starts a program under a tag and waits for it when the test ends.
func tagged(t *testing.T, tag uint64) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // dead already, unless the sweep missed it
		_ = cmd.Wait()
	})
	if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: tag, Max: tag}, nil); err != nil {
		t.Fatal(err)
	}
}

// A sweep reports whether everything is dead: processes that start others as fast as it scans
// survive it.
func TestSweepReportsSurvivors(t *testing.T) {
	nobody := func(process) bool { return false }
	first := FirstTag()
	newest := first
	mine := func(tag uint64) bool { return tag <= first && tag >= newest }
	tagged(t, newest)
	if !sweep(mine, nobody) {
		t.Error("one process that dies is said to survive")
	}
	grows := func(tag uint64) bool {
		if tag == newest {
			newest--
			tagged(t, newest)
		}
		return mine(tag)
	}
	newest--
	tagged(t, newest)
	if sweep(grows, nobody) {
		t.Error("processes that keep coming are said to be dead")
	}
	if err := KillPrograms(first); err != nil {
		t.Error(err)
	}
}
