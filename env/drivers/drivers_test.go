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
	// client-go's heartbeat goroutine ends when it gets a close message, or else at its next ping, up to 5 s later.
	// If a connection breaks in the last test, the goroutine still runs when goleak checks.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}

// kinds returns the names of the drivers under test. They include docker if its suite is on.
func kinds(t testing.TB) []string {
	t.Helper()
	kinds := []string{"bubblewrap", "local"}
	if suite.Docker.Value(t) != "" {
		kinds = append(kinds, "docker")
	}
	return kinds
}
