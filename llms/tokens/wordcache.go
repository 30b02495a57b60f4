package tokens

import (
	"hash/maphash"
	"sync/atomic"
)

// wordCache caches the counts of words in half a megabyte. The lowest bits of a word's hash
// select its row. A slot contains the hash with these bits replaced by the count. A full row
// drops its oldest slot. Collisions are as rare as those of fingerprint. wordCache is safe for
// concurrent use without a lock: if a race loses a slot, its word is counted again.
type wordCache struct {
	rows [1 << rowBits][8]atomic.Uint64 // the first field, so that each row is one cache line
	seed maphash.Seed
}

const rowBits = 13

func newWordCache() *wordCache { return &wordCache{seed: maphash.MakeSeed()} }

// hash returns the hash of the first n bytes of s. The hash of a word of less than eight bytes
// is unique, because each step is a bijection of its bytes and length.
func (w *wordCache) hash(s string, n int) uint64 {
	if n >= 8 {
		return maphash.String(w.seed, s[:n])
	}
	var x uint64
	if len(s) >= 8 {
		x = uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		x &= 1<<(8*n) - 1
	} else {
		for i := range n {
			x |= uint64(s[i]) << (8 * i)
		}
	}
	x = (x | uint64(n)<<56) * 0x9e3779b97f4a7c15
	x = (x ^ x>>32) * 0xbf58476d1ce4e5b9
	return x ^ x>>29
}

func (w *wordCache) get(hash uint64) (int, bool) {
	row := &w.rows[hash%(1<<rowBits)]
	for i := range row {
		if slot := row[i].Load(); slot>>rowBits == hash>>rowBits {
			return int(slot % (1 << rowBits)), true
		}
	}
	return 0, false
}

// put caches a count. It ignores a count that does not fit into a slot.
func (w *wordCache) put(hash uint64, n int) {
	if n >= 1<<rowBits {
		return
	}
	row := &w.rows[hash%(1<<rowBits)]
	for i := len(row) - 1; i > 0; i-- {
		row[i].Store(row[i-1].Load())
	}
	row[0].Store(hash>>rowBits<<rowBits | uint64(n))
}
