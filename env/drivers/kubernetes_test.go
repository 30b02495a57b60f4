package drivers

import (
	"os"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers/kubetest"
	"github.com/tracesmith/tracesmith/env/envtest"
)

// kube builds a driver for a server of ours.
func kube(t *testing.T, s *kubetest.Server, with map[string]any) env.Driver {
	t.Helper()
	all := map[string]any{"kubeconfig": s.Kubeconfig()}
	for k, v := range with {
		all[k] = v
	}
	return build(t, "kubernetes", all)
}

// TestKubernetes runs the suite over an API server of ours, and the real protocol.
func TestKubernetes(t *testing.T) {
	envtest.Run(t, envtest.Suite{Driver: kube(t, kubetest.Start(t), nil), Isolated: true})
}

// TestKubernetesCluster runs the suite on a real cluster.
func TestKubernetesCluster(t *testing.T) {
	kubeconfig := os.Getenv("TRACESMITH_TEST_KUBECONFIG")
	if kubeconfig == "" {
		t.Skip("TRACESMITH_TEST_KUBECONFIG=FILE runs this on that cluster, on image TRACESMITH_TEST_K8S_IMAGE")
	}
	with := map[string]any{"kubeconfig": kubeconfig}
	if image := os.Getenv("TRACESMITH_TEST_K8S_IMAGE"); image != "" {
		with["image"] = image
	}
	envtest.Run(t, envtest.Suite{Driver: build(t, "kubernetes", with), Isolated: true})
}
