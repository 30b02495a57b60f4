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

// singleProcess is the process of a run without a cluster. When it ends, another one takes its
// place. It implements faultInjector.
type singleProcess struct {
	guest string
	disk  *disk

	mu       sync.Mutex
	child    *os.Process     // nil if no process runs, or if it is about to end
	started  time.Time       // start of the child
	watchdog *time.Timer     // fires if the child makes no model call for too long; nil after its end
	resuming bool            // the child has made no model call yet
	resumed  []time.Duration // from the start of each child to its first model call
	endedBy  map[Kind]bool   // kinds of the faults that were injected to end the child
	pending  sync.WaitGroup  // stopped children that must be continued
}

// begin sets the process that faults strike from now on. onHang is called if the process makes
// no model call for too long.
func (p *singleProcess) begin(child *os.Process, onHang func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.child, p.resuming, p.started, p.endedBy = child, true, time.Now(), map[Kind]bool{}
	p.watchdog = time.AfterFunc(maxSilence, onHang)
}

// end forgets the process and returns the kinds of the faults that were injected to end it.
func (p *singleProcess) end() map[Kind]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.child = nil
	p.watchdog.Stop()
	p.watchdog = nil
	return p.endedBy
}

// requestReceived implements faultInjector.
func (p *singleProcess) requestReceived() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watchdog != nil { // a request may be read after the end of its process
		p.watchdog.Reset(maxSilence)
	}
	if p.resuming {
		p.resumed, p.resuming = append(p.resumed, time.Since(p.started)), false
	}
}

// strike implements faultInjector.
func (p *singleProcess) strike(f processFault, _ string) (found bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	child := p.child
	if child == nil {
		return false, nil
	}
	switch f.Kind {
	case Kill, Clock, StoreTorn:
		p.child, p.endedBy[f.Kind] = nil, true
		err = child.Kill()
	case Drain:
		p.child, p.endedBy[Drain] = nil, true // a second signal would cancel the episodes
		err = child.Signal(syscall.SIGINT)
	case Disk:
		p.child, p.endedBy[Disk] = nil, true
		err = p.disk.fill(uint64(f.At%2) * 40 << 20)
	case Stop:
		err = child.Signal(syscall.SIGSTOP)
		p.pending.Go(func() { resumeAfter(context.Background(), child, stopTime) })
	case Guest:
		return killGuest(child.Pid, p.guest, f.At)
	case Container:
		return removeContainer(child.Pid, f.At)
	}
	return true, err
}

// resumeAfter continues a stopped process after d, or when ctx ends.
func resumeAfter(ctx context.Context, p *os.Process, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	_ = p.Signal(syscall.SIGCONT) // this fails if the process was killed in the meantime
}
