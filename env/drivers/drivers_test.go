package drivers_test

import (
	"testing"

	"go.uber.org/goleak"

	_ "github.com/tracesmith/tracesmith/env/drivers/bubblewrap"
	_ "github.com/tracesmith/tracesmith/env/drivers/docker"
	_ "github.com/tracesmith/tracesmith/env/drivers/kubernetes"
	_ "github.com/tracesmith/tracesmith/env/drivers/local"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/internal/suite"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	// The heartbeat of client-go ends at a close message, or at its next ping, within 5 s. A connection that broke in
	// the last test leaves it behind for that long.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}

// kinds are the drivers under test. Docker joins if its suite is on.
func kinds(t testing.TB) []string {
	t.Helper()
	kinds := []string{"bubblewrap", "local"}
	if suite.Docker.Value(t) != "" {
		kinds = append(kinds, "docker")
	}
	return kinds
}
