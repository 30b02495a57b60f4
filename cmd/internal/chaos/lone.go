package chaos

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"
)

// stopTime is how long the fault Stop stops a process.
const stopTime = 2 * time.Second

// singleProcess is the one process of a run that is coordinator, engine and workers.
type singleProcess struct {
	guest string
	disk  *disk

	mu      sync.Mutex
	child   *os.Process // nil if no process runs, or if it is about to end
	started time.Time   // of the child
	watch   *time.Timer // fires if the child is silent; nil after its end
	waking  bool        // the child has not asked yet
	resumed []time.Duration
	ended   map[Kind]bool  // faults that ended the child
	pending sync.WaitGroup // stopped children to wake up
}

// begin sets the process that faults strike from now on. hung is called if it is silent
// for too long.
func (l *singleProcess) begin(child *os.Process, hung func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.child, l.waking, l.started, l.ended = child, true, time.Now(), map[Kind]bool{}
	l.watch = time.AfterFunc(silence, hung)
}

// end returns the faults that ended the process.
func (l *singleProcess) end() map[Kind]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.child = nil
	l.watch.Stop()
	l.watch = nil
	return l.ended
}

func (l *singleProcess) asked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watch != nil { // a request may be read after the end of its process
		l.watch.Reset(silence)
	}
	if l.waking {
		l.resumed, l.waking = append(l.resumed, time.Since(l.started)), false
	}
}

func (l *singleProcess) strike(f planned, _ string) (found bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	child := l.child
	if child == nil {
		return false, nil
	}
	switch f.Kind {
	case Kill, Clock, StoreTorn:
		l.child, l.ended[f.Kind] = nil, true
		err = child.Kill()
	case Drain:
		l.child, l.ended[Drain] = nil, true // a second signal would cancel
		err = child.Signal(syscall.SIGINT)
	case Disk:
		l.child, l.ended[Disk] = nil, true
		err = l.disk.fill(uint64(f.At%2) * 40 << 20)
	case Stop:
		err = child.Signal(syscall.SIGSTOP)
		l.pending.Go(func() { wake(context.Background(), child, stopTime) })
	case Guest:
		return killGuest(child.Pid, l.guest, f.At)
	case Container:
		return removeContainer(child.Pid, f.At)
	}
	return true, err
}

// wake continues a stopped process after a while, or when ctx ends.
func wake(ctx context.Context, p *os.Process, after time.Duration) {
	select {
	case <-time.After(after):
	case <-ctx.Done():
	}
	_ = p.Signal(syscall.SIGCONT) // it may have been killed meanwhile
}
