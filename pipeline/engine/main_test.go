package engine

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
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
