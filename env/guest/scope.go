package guest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A scope is one program the guest started with everything that came of it.
// Ancestry cannot tell that (a double fork breaks it), nor can sessions or the
// environment (a program changes both). A hard resource limit can: it is
// inherited by fork and exec, readable from outside, and an unprivileged process
// may only lower it. RLIMIT_RTTIME binds real-time threads alone, which no
// program here can have, so its value serves as the tag. Tags descend, so that
// where no filter forbids it (see tagKey) a process that lowers its own can only
// pretend to belong to a younger scope.
type scope struct {
	tag    uint64
	marks  []uint64     // tags of the holders of keys in it; under the lock of scopes
	leader atomic.Int64 // pid of the program that was started
	keep   bool         // the leader is a terminal: it outlives its children
	mu     sync.Mutex
	limit  string
	// Of the limits hit in a row: how many, and when the last.
	hits    int
	lastHit time.Time
}

// A terminal whose children are killed for a limit more than patience times, each
// within inARow of the one before, starts them itself and is not spared any more.
const (
	patience = 2
	inARow   = 2 * time.Second
)

// hit records which limit ended the scope; the first one stands. Stubborn tells
// that it was hit several times in a row.
func (sc *scope) hit(limit string) (stubborn bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.limit == "" {
		sc.limit = limit
	}
	now := time.Now()
	if now.Sub(sc.lastHit) > inARow {
		sc.hits = 0
	}
	sc.hits, sc.lastHit = sc.hits+1, now
	return sc.hits > patience
}

// takeLimit says which limit was hit and forgets it.
func (sc *scope) takeLimit() string {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	l := sc.limit
	sc.limit = ""
	return l
}

// scopes hands out tags and knows which scopes are open.
type scopes struct {
	first uint64 // the tag of the first scope
	alone bool   // this guest is the first process: all others descend from it
	mu    sync.Mutex
	next  uint64
	open  map[uint64]*scope
}

const (
	manyTags   = 1 << 32 // more than one guest gives
	highestTag = 1 << 62 // far from what is no limit
)

// FirstTag is a mark from which no other guest counts down.
func FirstTag() uint64 {
	ceiling := uint64(highestTag)
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_RTTIME, &own); err == nil {
		ceiling = min(ceiling, own.Max)
	}
	return ceiling - rand.Uint64N(ceiling/4) - 1
}

// Bury kills the programs of a guest that was started with this first tag and
// cannot do it any more, where they do not end with its namespace. It returns an
// error if some survive.
func Bury(first uint64) error {
	if first >= highestTag {
		return nil
	}
	accept := func(tag uint64) bool { return tag <= first && first-tag < manyTags }
	if !sweep(accept, func(process) bool { return false }) {
		return fmt.Errorf("killing the programs of a sandbox: some still run after %s", sweepBound)
	}
	return nil
}

func newScopes(first uint64) *scopes {
	return &scopes{first: first, next: first, alone: os.Getpid() == 1, open: map[uint64]*scope{}}
}

func (s *scopes) create(keep bool) *scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := &scope{tag: s.next, keep: keep}
	s.next--
	s.open[sc.tag] = sc
	return sc
}

func (s *scopes) forget(sc *scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sc.tag)
	for _, tag := range sc.marks {
		delete(s.open, tag)
	}
}

// mark makes a further tag for a part of a scope.
func (s *scopes) mark(sc *scope) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	tag := s.next
	s.next--
	s.open[tag] = sc
	sc.marks = append(sc.marks, tag)
	return tag
}

// owner is the open scope of a tag, nil where the program that was started has
// ended and left something behind.
func (s *scopes) owner(tag uint64) *scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[tag]
}

// ours accepts the tags of every scope there ever was, and of deserters: who
// lowered a tag below all that were handed out.
func (s *scopes) ours(tag uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return tag <= s.first && (tag > s.next || s.alone)
}

// unmarked accepts what has not got a tag yet.
func (s *scopes) unmarked(tag uint64) bool { return tag > s.first }

// of accepts one scope's tag and, in a namespace of its own, deserters.
func (s *scopes) of(sc *scope) func(uint64) bool {
	return func(tag uint64) bool {
		if tag == sc.tag {
			return true
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Contains(sc.marks, tag) || s.alone && tag <= s.next
	}
}

const (
	sweepBound  = 900 * time.Millisecond
	plainSweeps = 3 // sweeps before stopping the tree first
)

// sweep kills every process of accepted tag that spare does not hold, until none
// is left. A tree that forks faster than it is killed is stopped first. It returns
// false if some are left after sweepBound.
func sweep(accept func(uint64) bool, spare func(process) bool) bool {
	end := time.Now().Add(sweepBound)
	victims := func() []process {
		var out []process
		for _, p := range processes(accept) {
			if !spare(p) {
				out = append(out, p)
			}
		}
		return out
	}
	pause := time.Millisecond
	for round := 0; time.Now().Before(end); round++ {
		found := victims()
		if len(found) == 0 {
			return true
		}
		if round >= plainSweeps {
			found = freeze(found, victims, end)
		}
		for _, p := range found {
			p.signal(unix.SIGKILL)
		}
		time.Sleep(pause) // the kernel tears them down
		pause = min(2*pause, 16*time.Millisecond)
	}
	return len(victims()) == 0
}

// freeze stops processes until no new one appears.
func freeze(found []process, again func() []process, end time.Time) []process {
	stopped := map[identity]bool{}
	for time.Now().Before(end) {
		fresh := 0
		for _, p := range found {
			if !stopped[p.identity()] {
				stopped[p.identity()] = true
				p.signal(unix.SIGSTOP)
				fresh++
			}
		}
		if fresh == 0 {
			break
		}
		found = again()
	}
	return found
}

// kill sweeps and reaps, so that what it killed no longer counts as a process. It
// returns false if some processes survive.
func (s *server) kill(accept func(uint64) bool, spare func(process) bool) bool {
	defer s.calm(crowd)()
	dead := sweep(accept, spare)
	s.reaper.reap()
	return dead
}

// end kills a whole scope, and returns false if some of it survives.
func (s *server) end(sc *scope) bool {
	return s.kill(s.scopes.of(sc), func(process) bool { return false })
}
