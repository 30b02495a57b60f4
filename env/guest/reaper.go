package guest

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// reaper waits for every child of the guest: programs that it started, and orphans that it
// gets as the first process or a subreaper. The starter holds the same lock, so no program
// is reaped before it is in children.
type reaper struct {
	mu       sync.Mutex
	children map[int]*child
}

// child is a program that the guest started. code and end are set once done is closed.
type child struct {
	pid   int
	start time.Time
	done  chan struct{}
	code  int // exit status, 128+n for signal n
	end   time.Time
}

func newReaper() *reaper { return &reaper{children: map[int]*child{}} }

// run reaps whenever a signal arrives, until signals is closed.
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
		c, ours := r.children[pid]
		if !ours {
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
