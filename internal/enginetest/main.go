// Package enginetest holds code shared by the tests of the engine and of the packages
// that use it.
package enginetest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main is the TestMain of a package whose tests open engines. It fails if a test leaves a
// goroutine behind. A test may start the test binary as a separate program: child runs
// that program and returns true, or returns false in the tests themselves.
func Main(m *testing.M, child func() bool) {
	if child() {
		return
	}
	goleak.VerifyTestMain(settlingM{m}, natsLeak)
}

// natsLeak is a goroutine that nats.go 1.55.0 starts with the first asynchronous
// publication, such as that of ObjectStore.Put. If Put ends first, the goroutine reads a
// nil channel forever.
var natsLeak = goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")

// settlingM gives the goroutines of closed connections time to end on a busy machine.
type settlingM struct{ *testing.M }

func (s settlingM) Run() int {
	code := s.M.Run()
	for range 100 { // each attempt takes up to half a second
		if goleak.Find(natsLeak) == nil {
			break
		}
	}
	return code
}
