package guest

import (
	"runtime/debug"
	"runtime/metrics"
)

// restAfter is how much must have been allocated for a rest to be worth its
// while: about what a hundred calls need.
const restAfter = 1 << 20

// rester gives memory back to the system while nothing happens. A guest lives
// mostly between two calls; without this its heap, small as what it holds is,
// would stay at the runtime's least size for good, many times over on a machine
// with many sandboxes.
type rester struct {
	allocated uint64 // at the last rest
	rests     int
}

// rest is called when the guest has been idle for a moment. It costs about a
// millisecond, and nothing where little was allocated since the last time.
func (r *rester) rest() {
	now := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(now)
	if n := now[0].Value.Uint64(); n-r.allocated >= restAfter {
		debug.FreeOSMemory()
		metrics.Read(now)
		r.allocated = now[0].Value.Uint64()
		r.rests++
	}
}
