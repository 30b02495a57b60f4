package kubernetes

import (
	"os"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/kubetest"
	"github.com/tracesmith/tracesmith/internal/suite"
)

// kube builds a driver for a test server.
func kube(t *testing.T, s *kubetest.Server, with map[string]any) env.Driver {
	t.Helper()
	all := map[string]any{"kubeconfig": s.Kubeconfig()}
	for k, v := range with {
		all[k] = v
	}
	return envtest.Build(t, "kubernetes", all)
}

// removePod returns a function that deletes the pod of the sandbox with a given SandboxSpec.Label.
func removePod(d env.Driver) func(*testing.T, string) {
	return func(t *testing.T, label string) {
		t.Helper()
		api, err := d.(*driver).connect()
		if err != nil {
			t.Fatal(err)
		}
		defer api.release()
		pods, err := api.list(t.Context(), labelManagedBy+"="+managedBy)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pods {
			if p.Annotations[annotationSandbox] == label {
				if err := api.remove(t.Context(), p.Name, p.UID); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
		t.Fatalf("no pod belongs to the sandbox %q", label)
	}
}

// TestKubernetes runs the suite with a test API server, which uses the real protocols.
func TestKubernetes(t *testing.T) {
	d := kube(t, kubetest.Start(t), nil)
	// The test server has no node with control groups. TestKubernetesPodHasRequestsAndLimits checks the limits in the pod's
	// specification, and TestKubernetesCluster checks their effect.
	envtest.Run(t, envtest.Suite{Driver: d, Isolated: true, UnenforcedLimits: []string{"cpus"}, Remove: removePod(d)})
}

// TestKubernetesCluster runs the suite on a real cluster.
func TestKubernetesCluster(t *testing.T) {
	kubeconfig := suite.Kubernetes.Require(t)
	with := map[string]any{"kubeconfig": kubeconfig}
	if image := os.Getenv("TRACESMITH_TEST_K8S_IMAGE"); image != "" {
		with["image"] = image
	}
	d := envtest.Build(t, "kubernetes", with)
	envtest.Run(t, envtest.Suite{Driver: d, Isolated: true, Remote: true, Remove: removePod(d)})
}
