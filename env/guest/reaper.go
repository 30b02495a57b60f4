package guest

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// reaper waits for every child of the guest: the programs that the guest started, and orphans
// that become its children because it is the first process or a subreaper. The starter holds
// mu until a new program is in children, so that the program is not reaped before.
type reaper struct {
	mu       sync.Mutex
	children map[int]*child
}

// child is a program that the guest started. code and end are valid once done is closed.
type child struct {
	pid   int
	start time.Time
	done  chan struct{}
	code  int // exit status, or 128+n if signal n killed it
	end   time.Time
}

func newReaper() *reaper { return &reaper{children: map[int]*child{}} }

// run reaps children whenever a signal arrives, until signals is closed.
func (r *reaper) run(signals <-chan os.Signal) {
	for range signals {
		r.reap()
	}
}

func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if !ws.Exited() && !ws.Signaled() {
			continue
		}
		c, isProgram := r.children[pid]
		if !isProgram {
			continue
		}
		delete(r.children, pid)
		c.code, c.end = ws.ExitStatus(), time.Now()
		if ws.Signaled() {
			c.code = 128 + int(ws.Signal())
		}
		close(c.done)
	}
}
