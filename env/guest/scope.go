package guest

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A scope is a program that the guest started, together with all its descendants.
// Ancestry cannot identify them, because a double fork breaks it. Sessions and the environment
// cannot either, because a program can change both. A hard resource limit can: fork and exec
// inherit it, other processes can read it, and an unprivileged process may only lower
// it. RLIMIT_RTTIME limits only real-time threads, which programs here cannot have, so its
// value serves as the tag. Later scopes have lower tags, so a process that lowers its own
// (if no filter forbids that, see tagKey) can only claim to belong to a later scope.
type scope struct {
	tag        uint64
	keyTags    []uint64     // tags of the processes that hold keys; guarded by scopes.mu
	leader     atomic.Int64 // pid of the program that was started
	isTerminal bool         // the leader is a terminal's program, which outlives its children

	mu      sync.Mutex
	limit   string // the first limit exceeded since takeLimit
	repeats int    // limits exceeded in a row, each within hitInterval of the one before
	lastHit time.Time
}

// If the children of a terminal's program exceed a limit more than maxHits times in a row,
// each within hitInterval of the one before, the guest also kills the program, because it
// probably restarts them in a loop.
const (
	maxHits     = 2
	hitInterval = 2 * time.Second
)

// recordHit records that the scope exceeded a limit. It reports whether this has happened
// more than maxHits times in a row.
func (sc *scope) recordHit(limit string) (repeated bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.limit = cmp.Or(sc.limit, limit)
	now := time.Now()
	if now.Sub(sc.lastHit) > hitInterval {
		sc.repeats = 0
	}
	sc.repeats, sc.lastHit = sc.repeats+1, now
	return sc.repeats > maxHits
}

// takeLimit returns the first limit that was exceeded since the last call, or "".
func (sc *scope) takeLimit() string {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	l := sc.limit
	sc.limit = ""
	return l
}

// scopes assigns tags and keeps the open scopes. Safe for concurrent use.
type scopes struct {
	firstTag uint64 // the tag of the first scope
	isInit   bool   // the guest is the first process of its namespace, so all others descend from it

	mu      sync.Mutex
	nextTag uint64
	open    map[uint64]*scope // by tag, including keyTags
}

const (
	maxTags    = 1 << 32 // more than a guest can assign
	highestTag = 1 << 62 // far below RLIM_INFINITY, which means no limit
)

// FirstTag returns a random tag for the first scope of a guest, so that the tags of two
// guests differ.
func FirstTag() uint64 {
	ceiling := uint64(highestTag)
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_RTTIME, &own); err == nil {
		ceiling = min(ceiling, own.Max)
	}
	return ceiling - rand.Uint64N(ceiling/4) - 1
}

func newScopes(first uint64) *scopes {
	return &scopes{firstTag: first, nextTag: first, isInit: os.Getpid() == 1, open: map[uint64]*scope{}}
}

func (s *scopes) create(isTerminal bool) *scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := &scope{tag: s.nextTag, isTerminal: isTerminal}
	s.nextTag--
	s.open[sc.tag] = sc
	return sc
}

func (s *scopes) forget(sc *scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sc.tag)
	for _, tag := range sc.keyTags {
		delete(s.open, tag)
	}
}

// extend adds another tag to a scope, for some of its processes.
func (s *scopes) extend(sc *scope) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	tag := s.nextTag
	s.nextTag--
	s.open[tag] = sc
	sc.keyTags = append(sc.keyTags, tag)
	return tag
}

// byTag returns the open scope with a tag. It returns nil if the scope's program has ended
// but some of its processes still run.
func (s *scopes) byTag(tag uint64) *scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[tag]
}

// hasTag reports whether tag belongs to any scope, open or not. If the guest has its own
// namespace, that includes tags below all assigned ones, because a process can lower its tag.
func (s *scopes) hasTag(tag uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return tag <= s.firstTag && (tag > s.nextTag || s.isInit)
}

// isUntagged reports whether a process with this limit has no tag yet.
func (s *scopes) isUntagged(tag uint64) bool { return tag > s.firstTag }

// tagFilter returns a function that accepts the tags of one scope. If the guest has its own
// namespace, the function also accepts lowered tags.
func (s *scopes) tagFilter(sc *scope) func(uint64) bool {
	return func(tag uint64) bool {
		if tag == sc.tag {
			return true
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Contains(sc.keyTags, tag) || s.isInit && tag <= s.nextTag
	}
}
