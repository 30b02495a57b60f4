package guest

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	lookOften  = 50 * time.Millisecond
	lookSeldom = time.Second
)

// watch enforces the memory and process limits over all programs together: it
// looks every 50 ms while something changes, less often while nothing does, and
// not at all while nothing runs. What it finds still twice in a row lets the guest
// rest.
func (s *server) watch() {
	<-s.ready
	var last [2]int64
	pace := time.Duration(0) // 0: nothing runs
	look := time.NewTimer(0)
	var idle rester
	for {
		select {
		case <-s.busy:
			if pace != lookOften { // else a look is due soon anyway
				pace = lookOften
				look.Reset(pace)
			}
			continue
		case <-look.C:
		}
		all := processes(s.scopes.ours)
		var threads, rss int64
		for _, p := range all {
			threads += p.threads
			rss += p.rss
		}
		var loose []int
		if s.scopes.alone { // else the segments may be anybody's
			var size int64
			loose, size = segments()
			rss += size
		}
		switch now := [2]int64{threads, rss >> 20}; {
		case len(all) == 0 && pace != lookOften, now == last && pace == lookSeldom:
			idle.rest()
			if len(all) == 0 {
				pace = 0
			}
		case len(all) == 0:
			pace = lookSeldom
		case now == last:
			pace = min(2*max(pace, lookOften), lookSeldom)
		default:
			last, pace = now, lookOften
		}
		s.judge(all, threads, rss, loose)
		if pace > 0 {
			look.Reset(pace)
		}
	}
}

// judge kills the heaviest scope while a limit is exceeded. Memory is summed as
// resident size, which counts shared pages for each process; only when that sum
// is too large is the proportional size read, and it decides.
func (s *server) judge(all []process, threads, rss int64, loose []int) {
	if limit := s.config.Processes; limit > 0 && threads > limit {
		s.punish("processes", all, func(p process) int64 { return p.threads })
		return
	}
	limit := s.config.MemoryBytes
	if limit <= 0 || rss <= limit {
		return
	}
	sum := rss
	size := map[int]int64{}
	for _, p := range all {
		size[p.pid] = p.pss()
		sum += size[p.pid] - p.rss
	}
	if sum > limit {
		dropSegments(loose)
		s.punish("memory", all, func(p process) int64 { return size[p.pid] })
	}
}

// punish ends the scope of greatest weight. A terminal's own process is spared
// when the weight lies with its children.
func (s *server) punish(limit string, all []process, weight func(process) int64) {
	sums := map[uint64]int64{}
	var worst uint64
	for _, p := range all {
		sums[p.tag] += weight(p)
		if sums[p.tag] >= sums[worst] {
			worst = p.tag
		}
	}
	sc := s.scopes.owner(worst)
	if sc == nil {
		s.kill(func(tag uint64) bool { return tag == worst }, func(process) bool { return false })
		return
	}
	sc.hit(limit)
	leader := 0
	if sc.keep {
		for _, p := range all {
			if int64(p.pid) == sc.leader.Load() && 2*weight(p) < sums[worst] {
				leader = p.pid
				// Stopped, it starts nothing new that would be killed with the old.
				p.signal(unix.SIGSTOP)
				defer p.signal(unix.SIGCONT)
			}
		}
	}
	s.kill(s.scopes.of(sc), func(p process) bool { return p.pid == leader })
}
