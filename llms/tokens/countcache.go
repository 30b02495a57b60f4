package tokens

import (
	"hash/maphash"
	"sync"
)

// countCache caches the counts of texts, because a conversation is counted at every turn and
// only its end is new. When it is full, it drops the older half. It is safe for concurrent
// use.
type countCache struct {
	seed maphash.Seed

	mu         sync.Mutex
	young, old map[fingerprint]int
}

// fingerprint identifies a text. Collisions are too rare to matter.
type fingerprint struct {
	hash   uint64
	length int
}

// halfSize is the number of counts in one half, about 1 MB.
const halfSize = 1 << 14

func newCountCache() *countCache {
	return &countCache{seed: maphash.MakeSeed(), young: map[fingerprint]int{}}
}

func (m *countCache) key(s string) fingerprint { return fingerprint{maphash.String(m.seed, s), len(s)} }

func (m *countCache) get(key fingerprint) (int, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.young[key]
	if !ok {
		if n, ok = m.old[key]; ok {
			m.add(key, n)
		}
	}
	return n, ok
}

func (m *countCache) put(key fingerprint, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(key, n)
}

func (m *countCache) add(key fingerprint, n int) {
	if len(m.young) >= halfSize {
		m.old, m.young = m.young, make(map[fingerprint]int, halfSize)
	}
	m.young[key] = n
}
