package guest

import (
	"runtime/debug"
	"runtime/metrics"
)

// releaseAfter is the number of allocated bytes after which a release is worth its cost.
// The guest allocates that much in about a hundred calls.
const releaseAfter = 1 << 20

// heapReleaser returns memory to the system while the guest is idle, which is most of the
// time. Without it, the heap would stay at the size at which the runtime first collects
// garbage, although little of it is in use. On a machine with many sandboxes, this adds up.
type heapReleaser struct {
	allocated uint64 // bytes that the guest had allocated in total at the last release
	releases  int
}

// release returns free memory to the system, which takes about a millisecond. It does
// nothing if fewer than releaseAfter bytes were allocated since the last release.
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
