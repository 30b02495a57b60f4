package engine

import (
	"testing"

	"github.com/tracesmith/tracesmith/internal/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, child) }
