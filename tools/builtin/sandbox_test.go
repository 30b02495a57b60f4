package builtin

import (
	"os"
	"testing"

	_ "github.com/tracesmith/tracesmith/env/drivers/bubblewrap"
	"github.com/tracesmith/tracesmith/env/guest"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	os.Exit(m.Run())
}
