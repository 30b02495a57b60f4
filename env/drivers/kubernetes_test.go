package drivers

import (
	"testing"

	"github.com/tracesmith/tracesmith/env/drivers/kubetest"
	"github.com/tracesmith/tracesmith/env/envtest"
)

// TestKubernetes runs the suite over an API server of ours, and the real protocol.
func TestKubernetes(t *testing.T) {
	s := kubetest.Start(t)
	envtest.Run(t, envtest.Suite{Driver: build(t, "kubernetes", map[string]any{"kubeconfig": s.Kubeconfig()}), Isolated: true})
}
