package guest

import (
	"runtime/debug"
	"runtime/metrics"
)

// releaseAfter is how many bytes must have been allocated for a release to be worth
// its cost: about what a hundred calls need.
const releaseAfter = 1 << 20

// heapReleaser gives memory back to the system while the guest is idle. A guest spends
// most of its life between two calls. Without this its heap, which holds little, would
// stay at the runtime's smallest size, many times over on a machine with many sandboxes.
type heapReleaser struct {
	allocated uint64 // bytes, up to the last release
	releases  int
}

// release takes about a millisecond, and does nothing if little was allocated since the
// last time.
func (r *heapReleaser) release() {
	now := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(now)
	if n := now[0].Value.Uint64(); n-r.allocated >= releaseAfter {
		debug.FreeOSMemory()
		metrics.Read(now)
		r.allocated = now[0].Value.Uint64()
		r.releases++
	}
}
