package budget

import (
	"testing"

	"github.com/tracesmith/tracesmith/internal/enginetest"
)

// TestMain passes a child that never runs, because no test starts this binary as a program.
func TestMain(m *testing.M) { enginetest.Main(m, func() bool { return false }) }
