package chaos

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"
)

// stopped is how long a stopped process stands still.
const stopped = 2 * time.Second

// lone is the one process of a run that is coordinator, engine and workers.
type lone struct {
	guest string
	disk  *disk

	mu      sync.Mutex
	child   *os.Process // nil: none is alive, or it is about to end
	started time.Time   // of the child
	watch   *time.Timer // runs out where the child is silent; nil after its end
	waking  bool        // the child has not asked yet
	resumed []time.Duration
	ended   map[Kind]bool  // what the child was brought to its end with
	pending sync.WaitGroup // children to be woken up
}

// begin names the process that faults strike from now on; hung is called where it
// falls silent.
func (l *lone) begin(child *os.Process, hung func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.child, l.waking, l.started, l.ended = child, true, time.Now(), map[Kind]bool{}
	l.watch = time.AfterFunc(silence, hung)
}

// end tells what brought the process to its end.
func (l *lone) end() map[Kind]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.child = nil
	l.watch.Stop()
	l.watch = nil
	return l.ended
}

func (l *lone) asked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watch != nil { // a question may be read after the end of who asked it
		l.watch.Reset(silence)
	}
	if l.waking {
		l.resumed, l.waking = append(l.resumed, time.Since(l.started)), false
	}
}

func (l *lone) strike(f planned, _ string) (found bool, err error) {
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
		l.child, l.ended[Drain] = nil, true // a second one would cancel
		err = child.Signal(syscall.SIGINT)
	case Disk:
		l.child, l.ended[Disk] = nil, true
		err = l.disk.fill(uint64(f.At%2) * 40 << 20)
	case Stop:
		err = child.Signal(syscall.SIGSTOP)
		l.pending.Go(func() { wake(context.Background(), child, stopped) })
	case Guest:
		return killGuest(child.Pid, l.guest, f.At)
	case Container:
		return removeContainer(child.Pid, f.At)
	}
	return true, err
}

// wake has a stopped process go on, after a while or at the end of ctx.
func wake(ctx context.Context, p *os.Process, after time.Duration) {
	select {
	case <-time.After(after):
	case <-ctx.Done():
	}
	_ = p.Signal(syscall.SIGCONT) // it may have been killed meanwhile
}
