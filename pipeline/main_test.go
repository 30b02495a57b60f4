package pipeline_test

import (
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/engine/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, child) }
