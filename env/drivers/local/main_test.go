package local

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tracesmith/tracesmith/env/guest"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	goleak.VerifyTestMain(m)
}
