package drivers

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/schemas"
)

var _ env.Placed = (*Sandbox)(nil)

// Sandbox implements env.Sandbox with a guest and what must be torn down around it. Set the fields before the first
// call; the methods are safe for concurrent use.
type Sandbox struct {
	*guest.Client
	EnvKey schemas.EnvKey
	Temp   string // the directory for temporary files; "" = /tmp
	// Destroy removes the sandbox. It runs once, after the stream was closed, with RemoveTimeout as its limit.
	Destroy func(context.Context) error

	once sync.Once
	err  error
}

// Key implements env.Sandbox.
func (s *Sandbox) Key() schemas.EnvKey { return s.EnvKey }

// TempDir implements env.Placed, as the client's Workdir does.
func (s *Sandbox) TempDir() string { return s.Temp }

// Close implements env.Sandbox. It cleans up even if ctx has ended, and returns the same error each time.
func (s *Sandbox) Close(ctx context.Context) error {
	s.once.Do(func() {
		s.Hangup()
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), RemoveTimeout)
		defer cancel()
		s.err = s.Destroy(late)
	})
	return s.err
}

// RandomName returns 16 random lower-case letters and digits, which no other sandbox has.
func RandomName() string { return strings.ToLower(rand.Text()[:16]) }
