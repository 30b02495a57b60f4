package env

import (
	"sync/atomic"
	"time"
)

// Meter adds up the CPU time of sandboxes. The zero value is ready to use. A Meter is safe for concurrent use.
type Meter struct{ used atomic.Int64 }

// Add adds the CPU time of a sandbox. It does nothing if m is nil.
func (m *Meter) Add(used time.Duration) {
	if m != nil {
		m.used.Add(int64(used))
	}
}

// Used returns the CPU time added so far, 0 if m is nil.
func (m *Meter) Used() time.Duration {
	if m == nil {
		return 0
	}
	return time.Duration(m.used.Load())
}
