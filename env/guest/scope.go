package guest

import (
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A scope is a program that the guest started together with all of its descendants.
// Ancestry cannot identify them (a double fork breaks it), nor can sessions or the
// environment (a program changes both). A hard resource limit can: fork and exec
// inherit it, it is readable from outside, and an unprivileged process may only lower
// it. RLIMIT_RTTIME binds real-time threads alone, which no program here can have, so
// its value serves as the tag. Tags descend, so a process that lowers its own, where
// no filter forbids it (see tagKey), can only pretend to belong to a younger scope.
type scope struct {
	tag    uint64
	extra  []uint64     // tags of the holders of keys in it; under the lock of scopes
	leader atomic.Int64 // pid of the program that was started
	keep   bool         // the leader is a terminal's program, which outlives its children
	mu     sync.Mutex
	limit  string
	// How many limits were hit in a row, and when the last one was.
	hits    int
	lastHit time.Time
}

// A terminal's program whose children exceed a limit more than maxHits times, each
// within hitInterval of the one before, starts them again and again: it is killed too.
const (
	maxHits     = 2
	hitInterval = 2 * time.Second
)

// hit records which limit ended the scope; the first one since takeLimit counts. It
// returns true if the scope has exceeded limits again and again.
func (sc *scope) hit(limit string) (repeated bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.limit == "" {
		sc.limit = limit
	}
	now := time.Now()
	if now.Sub(sc.lastHit) > hitInterval {
		sc.hits = 0
	}
	sc.hits, sc.lastHit = sc.hits+1, now
	return sc.hits > maxHits
}

// takeLimit returns which limit was hit, "" if none, and forgets it.
func (sc *scope) takeLimit() string {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	l := sc.limit
	sc.limit = ""
	return l
}

// scopes hands out tags and knows which scopes are open. Safe for concurrent use.
type scopes struct {
	first uint64 // the tag of the first scope
	alone bool   // this guest is the first process of its namespace: all others descend from it
	mu    sync.Mutex
	next  uint64
	open  map[uint64]*scope
}

const (
	manyTags   = 1 << 32 // more than one guest gives
	highestTag = 1 << 62 // far below "no limit"
)

// FirstTag is a random tag for the first scope of a guest, so that the tags of two guests
// differ.
func FirstTag() uint64 {
	ceiling := uint64(highestTag)
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_RTTIME, &own); err == nil {
		ceiling = min(ceiling, own.Max)
	}
	return ceiling - rand.Uint64N(ceiling/4) - 1
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
	for _, tag := range sc.extra {
		delete(s.open, tag)
	}
}

// extend makes a further tag for a part of a scope.
func (s *scopes) extend(sc *scope) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	tag := s.next
	s.next--
	s.open[tag] = sc
	sc.extra = append(sc.extra, tag)
	return tag
}

// owner is the open scope of a tag, nil if its program has ended and left processes
// behind.
func (s *scopes) owner(tag uint64) *scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[tag]
}

// ours accepts the tags of all scopes, open or not, and in a namespace of its own also
// tags below all that were given out: a process can lower its tag.
func (s *scopes) ours(tag uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return tag <= s.first && (tag > s.next || s.alone)
}

// untagged accepts processes that have no tag yet.
func (s *scopes) untagged(tag uint64) bool { return tag > s.first }

// of accepts the tags of one scope and, in a namespace of its own, lowered ones.
func (s *scopes) of(sc *scope) func(uint64) bool {
	return func(tag uint64) bool {
		if tag == sc.tag {
			return true
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Contains(sc.extra, tag) || s.alone && tag <= s.next
	}
}
