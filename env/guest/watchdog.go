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
		c, release := s.look()
		all, threads, rss := c.all, c.threads, c.rss
		switch now := [2]int64{threads, rss >> 20}; {
		case len(all) == 0 && pace != lookOften, now == last && pace == lookSeldom:
			if s.reaper.mu.TryLock() { // no program is about to start: see startOne
				idle.rest()
				s.reaper.mu.Unlock()
			}
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
		s.judge(c)
		release()
		if pace > 0 {
			look.Reset(pace)
		}
	}
}

// census is what one look found.
type census struct {
	all          []process
	threads, rss int64
	loose        []int // memory segments of no process; their size is part of rss
}

// look counts what runs. A crowd that may exceed a limit is counted at rest, and
// rests until release: what runs and forks is never seen whole, and each of its
// sizes can take long to learn.
func (s *server) look() (c census, release func()) {
	release = func() {}
	if limit := s.config.Processes; limit > 0 {
		release = s.calm(int(limit))
	}
	c = s.count()
	if limit := s.config.MemoryBytes; limit > 0 && c.rss > limit && len(c.all) > crowd {
		before, rest := release, s.calm(crowd)
		return s.count(), func() { rest(); before() }
	}
	return c, release
}

func (s *server) count() (c census) {
	live, dead := processesAndDead(s.scopes.ours)
	c.all = append(live, dead...)
	for _, p := range c.all {
		c.threads += p.threads
		c.rss += p.rss
	}
	if s.scopes.alone { // else the segments may be anybody's
		var size int64
		c.loose, size = segments()
		c.rss += size
	}
	return c
}

// judge kills the heaviest scope while a limit is exceeded. Memory is summed as
// resident size, which counts shared pages for each process; only when that sum
// is too large is the proportional size read, and it decides.
func (s *server) judge(c census) {
	if limit := s.config.Processes; limit > 0 && c.threads > limit {
		s.punish("processes", c.all, func(p process) int64 { return p.threads })
		return
	}
	limit := s.config.MemoryBytes
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
		dropSegments(c.loose)
		s.punish("memory", c.all, func(p process) int64 { return size[p.pid] })
	}
}

// punish ends the scope of greatest weight. A terminal's own process is spared
// when the weight lies with its children, unless it makes them again and again.
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
	leader := 0
	if stubborn := sc.hit(limit); sc.keep && !stubborn {
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
