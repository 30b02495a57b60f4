package guest

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

const (
	fastInterval = 50 * time.Millisecond
	slowInterval = time.Second
)

// watchdog enforces the limits on memory and processes, which apply to all programs together.
type watchdog struct {
	killer  *killer
	limits  *guestpb.HelloRequest
	wakeups chan struct{} // has room for one value: a program may have started
}

// wake makes the watchdog check the limits soon.
func (w *watchdog) wake() {
	select {
	case w.wakeups <- struct{}{}:
	default:
	}
}

// run checks the limits every 50 ms while the use of memory or threads changes, less often
// while it does not, and not at all while no program runs. While the guest is idle, run
// releases the guest's heap. It never returns.
func (w *watchdog) run() {
	var last [2]int64            // threads and MiB of memory at the last check
	interval := time.Duration(0) // 0 = no program runs
	timer := time.NewTimer(0)
	var heap heapReleaser
	for {
		select {
		case <-w.wakeups:
			if interval != fastInterval { // otherwise a check is due soon anyway
				interval = fastInterval
				timer.Reset(interval)
			}
			continue
		case <-timer.C:
		}
		u, resume := w.measure()
		switch now := [2]int64{u.threads, u.memory >> 20}; {
		case len(u.processes) == 0 && interval != fastInterval, now == last && interval == slowInterval:
			// The guest is idle. While the reaper is locked, no program is being started (see startOne).
			if reaper := w.killer.reaper; reaper.mu.TryLock() {
				heap.release()
				reaper.mu.Unlock()
			}
			if len(u.processes) == 0 {
				interval = 0
			}
		case len(u.processes) == 0:
			interval = slowInterval
		case now == last:
			interval = min(2*max(interval, fastInterval), slowInterval)
		default:
			last, interval = now, fastInterval
		}
		w.enforce(u)
		resume()
		if interval > 0 {
			timer.Reset(interval)
		}
	}
}

// usage is the use of resources by all programs, from one measurement.
type usage struct {
	processes       []process
	threads, memory int64 // memory is in bytes
	segments        []int // shared memory that no process has mapped; its size is part of memory
}

// measure counts the processes and their memory. If many processes may exceed a limit, it stops
// all of them until resume is called, because reading the size of each can take long, and
// processes that fork meanwhile would not be counted.
func (w *watchdog) measure() (u usage, resume func()) {
	resume = func() {}
	if limit := w.limits.Processes; limit > 0 {
		resume = w.killer.pauseAll(int(limit))
	}
	u = w.count()
	if limit := w.limits.MemoryBytes; limit > 0 && u.memory > limit && len(u.processes) > crowdSize {
		resumeFirst, resumeSecond := resume, w.killer.pauseAll(crowdSize)
		return w.count(), func() { resumeSecond(); resumeFirst() }
	}
	return u, resume
}

func (w *watchdog) count() (u usage) {
	live, zombies := processesAndZombies(w.killer.scopes.hasTag)
	u.processes = append(live, zombies...)
	for _, p := range u.processes {
		u.threads += p.threads
		u.memory += p.rss
	}
	if w.killer.scopes.isInit { // otherwise the segments may belong to other users of the machine
		var size int64
		u.segments, size = unmappedSegments()
		u.memory += size
	}
	return u
}

// enforce kills the heaviest scope if a limit is exceeded. The sum of the resident set sizes
// counts shared pages once for each process. If that sum exceeds the memory limit, enforce
// reads the proportional set sizes, which cost more to read, and compares their sum.
func (w *watchdog) enforce(u usage) {
	if limit := w.limits.Processes; limit > 0 && u.threads > limit {
		w.killHeaviest("processes", u.processes, func(p process) int64 { return p.threads })
		return
	}
	limit := w.limits.MemoryBytes
	if limit <= 0 || u.memory <= limit {
		return
	}
	sum := u.memory
	size := map[int]int64{}
	for _, p := range u.processes {
		size[p.pid] = p.pss()
		sum += size[p.pid] - p.rss
	}
	if sum > limit {
		removeSegments(u.segments)
		w.killHeaviest("memory", u.processes, func(p process) int64 { return size[p.pid] })
	}
}

// killHeaviest kills the scope of the greatest weight. It spares a terminal's program if its
// children have most of the weight, unless they exceed limits repeatedly.
func (w *watchdog) killHeaviest(limit string, all []process, weight func(process) int64) {
	sums := map[uint64]int64{}
	var heaviest uint64
	for _, p := range all {
		sums[p.tag] += weight(p)
		if sums[p.tag] >= sums[heaviest] {
			heaviest = p.tag
		}
	}
	sc := w.killer.scopes.byTag(heaviest)
	if sc == nil {
		w.killer.kill(func(tag uint64) bool { return tag == heaviest }, spareNone)
		return
	}
	spared := 0 // pid
	if repeated := sc.recordHit(limit); sc.isTerminal && !repeated {
		for _, p := range all {
			if int64(p.pid) == sc.leader.Load() && 2*weight(p) < sums[heaviest] {
				spared = p.pid
				// Stop it, so that it does not start new children, which would be killed as well.
				p.signal(unix.SIGSTOP)
				defer p.signal(unix.SIGCONT)
			}
		}
	}
	w.killer.kill(w.killer.scopes.tagFilter(sc), func(p process) bool { return p.pid == spared })
}
