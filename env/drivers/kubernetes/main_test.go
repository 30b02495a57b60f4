package kubernetes

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tracesmith/tracesmith/env/guest"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	// The heartbeat of client-go ends at a close message, or at its next ping, within 5 s. A connection that broke in
	// the last test leaves it behind for that long.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}
