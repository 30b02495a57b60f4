package guest

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A program waits for the guest at its exec. If the guest is slow, it must not mistake the program
// for one that agent code has stopped before its start.
func TestSlowGuestDoesNotKillNewPrograms(t *testing.T) {
	s := newServer(tagKey{}, 0).starter
	if !s.traced {
		t.Skip("the kernel forbids tracing, so programs do not stop at their exec")
	}
	runtime.LockOSThread() // only the thread that forked a traced child may detach from it
	defer runtime.UnlockOSThread()
	stopRescue := s.killStuckStarts()
	pid, err := startTraced("/bin/sh", []string{"sh", "-c", "exit 7"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Ptrace: true}},
		func(int) error { time.Sleep(5 * rescueInterval); return nil })
	stopRescue()
	if err != nil {
		t.Fatal(err)
	}
	var ws unix.WaitStatus
	if _, err := unix.Wait4(pid, &ws, 0, nil); err != nil || ws.ExitStatus() != 7 {
		t.Errorf("the program ended with status %x, %v", int(ws), err)
	}
}
