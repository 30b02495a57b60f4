package drivers

import (
	"os"
	"testing"

	"github.com/tracesmith/tracesmith/env/guest"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	os.Exit(m.Run())
}
