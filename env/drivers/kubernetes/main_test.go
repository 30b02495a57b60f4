package kubernetes

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tracesmith/tracesmith/env/guest"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	// client-go's heartbeat goroutine ends when it gets a close message, or else at its next ping, up to 5 s later.
	// If a connection breaks in the last test, the goroutine still runs when goleak checks.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}
