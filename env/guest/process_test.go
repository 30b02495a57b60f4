package guest

import (
	"io"
	"os/exec"
	"testing"
)

// A process that ends before its proportional set size is read counts as using no memory. If its
// last resident set size counted instead, the sum over all processes could exceed the memory limit.
func TestEndedProcessUsesNoMemory(t *testing.T) {
	cmd := exec.Command("python3", "-c", "hold = bytearray(20 << 20); print('up', flush=True); input()")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	seen, ok := readStat(cmd.Process.Pid)
	if !ok || seen.rss < 20<<20 || seen.pss() < 20<<20 {
		t.Errorf("a live process: %+v", seen)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if got := seen.pss(); got != 0 {
		t.Errorf("an ended process uses %d bytes", got)
	}
}
