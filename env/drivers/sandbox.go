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

var _ env.HostSandbox = (*Sandbox)(nil)

// Sandbox implements env.Sandbox with the client of a guest and a function that removes everything around the guest.
// Set the fields before the first call. The methods are safe for concurrent use.
type Sandbox struct {
	*guest.Client
	EnvKey schemas.EnvKey
	Temp   string // the directory for temporary files; "" = /tmp
	Python string // see env.HostSandbox
	// Destroy removes the sandbox. Close calls it once, after it has closed the stream. Its context ends after
	// RemoveTimeout.
	Destroy func(context.Context) error

	once sync.Once
	err  error
}

// Key implements env.Sandbox.
func (s *Sandbox) Key() schemas.EnvKey { return s.EnvKey }

// TempDir implements env.HostSandbox, as does the client's method Workdir.
func (s *Sandbox) TempDir() string { return s.Temp }

// HostPython implements env.HostSandbox.
func (s *Sandbox) HostPython() string { return s.Python }

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

// RandomName returns 16 random lower-case letters and digits. Two calls never return the same name in practice.
func RandomName() string { return strings.ToLower(rand.Text()[:16]) }
