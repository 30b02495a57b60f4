package guest

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

const (
	fastPace = 50 * time.Millisecond
	slowPace = time.Second
)

// watchdog enforces the limits on memory and processes over all programs together.
type watchdog struct {
	killer *killer
	limits *guestpb.HelloRequest
	busy   chan struct{} // of one element: something may have started
}

// wake makes the watchdog look soon.
func (w *watchdog) wake() {
	select {
	case w.busy <- struct{}{}:
	default:
	}
}

// run never returns. It looks every 50 ms while something changes, less often while
// nothing does, and not at all while nothing runs. While the guest is idle it releases
// the guest's heap.
func (w *watchdog) run() {
	var last [2]int64
	pace := time.Duration(0) // 0: nothing runs
	timer := time.NewTimer(0)
	var heap heapReleaser
	for {
		select {
		case <-w.busy:
			if pace != fastPace { // else a look is due soon anyway
				pace = fastPace
				timer.Reset(pace)
			}
			continue
		case <-timer.C:
		}
		c, resume := w.look()
		switch now := [2]int64{c.threads, c.rss >> 20}; {
		case len(c.all) == 0 && pace != fastPace, now == last && pace == slowPace:
			if reaper := w.killer.reaper; reaper.mu.TryLock() { // no program is about to start: see startOne
				heap.release()
				reaper.mu.Unlock()
			}
			if len(c.all) == 0 {
				pace = 0
			}
		case len(c.all) == 0:
			pace = slowPace
		case now == last:
			pace = min(2*max(pace, fastPace), slowPace)
		default:
			last, pace = now, fastPace
		}
		w.enforce(c)
		resume()
		if pace > 0 {
			timer.Reset(pace)
		}
	}
}

// census is what one look found.
type census struct {
	all          []process
	threads, rss int64
	segments     []int // shared memory that no process has mapped; its size is part of rss
}

// look counts what runs. It stops a crowd that may exceed a limit, until resume is called:
// processes that fork meanwhile are never counted completely, and to read the size of each
// can take long.
func (w *watchdog) look() (c census, resume func()) {
	resume = func() {}
	if limit := w.limits.Processes; limit > 0 {
		resume = w.killer.pauseAll(int(limit))
	}
	c = w.count()
	if limit := w.limits.MemoryBytes; limit > 0 && c.rss > limit && len(c.all) > crowd {
		first, second := resume, w.killer.pauseAll(crowd)
		return w.count(), func() { second(); first() }
	}
	return c, resume
}

func (w *watchdog) count() (c census) {
	live, dead := processesAndDead(w.killer.scopes.ours)
	c.all = append(live, dead...)
	for _, p := range c.all {
		c.threads += p.threads
		c.rss += p.rss
	}
	if w.killer.scopes.alone { // else the segments may belong to other users of the machine
		var size int64
		c.segments, size = segments()
		c.rss += size
	}
	return c
}

// enforce kills the heaviest scope if a limit is exceeded. It first sums the resident
// sizes, which count shared pages once for each process. Only if that sum is too large
// does it read the proportional sizes, which decide.
func (w *watchdog) enforce(c census) {
	if limit := w.limits.Processes; limit > 0 && c.threads > limit {
		w.killHeaviest("processes", c.all, func(p process) int64 { return p.threads })
		return
	}
	limit := w.limits.MemoryBytes
	if limit <= 0 || c.rss <= limit {
		return
	}
	sum := c.rss
	size := map[int]int64{}
	for _, p := range c.all {
		size[p.pid] = p.pss()
		sum += size[p.pid] - p.rss
	}
	if sum > limit {
		dropSegments(c.segments)
		w.killHeaviest("memory", c.all, func(p process) int64 { return size[p.pid] })
	}
}

// killHeaviest kills the scope of greatest weight. It spares a terminal's own process if
// most of the weight is its children's, unless it starts them again and again.
func (w *watchdog) killHeaviest(limit string, all []process, weight func(process) int64) {
	sums := map[uint64]int64{}
	var worst uint64
	for _, p := range all {
		sums[p.tag] += weight(p)
		if sums[p.tag] >= sums[worst] {
			worst = p.tag
		}
	}
	sc := w.killer.scopes.owner(worst)
	if sc == nil {
		w.killer.kill(func(tag uint64) bool { return tag == worst }, none)
		return
	}
	leader := 0
	if repeated := sc.hit(limit); sc.keep && !repeated {
		for _, p := range all {
			if int64(p.pid) == sc.leader.Load() && 2*weight(p) < sums[worst] {
				leader = p.pid
				// While it is stopped, it starts no new children that would be killed with the old.
				p.signal(unix.SIGSTOP)
				defer p.signal(unix.SIGCONT)
			}
		}
	}
	w.killer.kill(w.killer.scopes.of(sc), func(p process) bool { return p.pid == leader })
}
