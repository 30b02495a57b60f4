// Package enginetest holds what tests of the engine, and of what runs on it,
// share. Only tests import it.
package enginetest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main is the TestMain of a package whose tests open engines: it fails where one
// leaves a goroutine behind. child is what the test binary is instead where a test
// starts it as a program of its own, and false elsewhere.
func Main(m *testing.M, child func() bool) {
	if child() {
		return
	}
	goleak.VerifyTestMain(settling{m}, notOurs)
}

// nats.go 1.55.0 starts it with the first asynchronous publication, that of
// ObjectStore.Put; where the end of Put comes first, it reads a nil channel for ever.
var notOurs = goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")

// settling gives the goroutines of closed connections time to end on a busy machine.
type settling struct{ *testing.M }

func (s settling) Run() int {
	code := s.M.Run()
	for range 100 { // each looks for half a second
		if goleak.Find(notOurs) == nil {
			break
		}
	}
	return code
}
