package budget

import (
	"testing"

	"github.com/tracesmith/tracesmith/internal/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, func() bool { return false }) }
