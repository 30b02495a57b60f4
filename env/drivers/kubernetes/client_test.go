package kubernetes

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/kubetest"
)

// connected returns the client of a driver for a test server.
func connected(t *testing.T, s *kubetest.Server) *client {
	t.Helper()
	api, err := kube(t, s, nil).(*driver).connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.release)
	return api
}

// The client does not adopt or remove another pod of the same name.
func TestKubernetesPodsOfTheSameName(t *testing.T) {
	s := kubetest.Start(t)
	api := connected(t, s)
	theirs := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one", Annotations: map[string]string{annotationAttempt: "theirs"}}}
	s.AddPod(theirs)
	ours := theirs.DeepCopy()
	ours.Annotations[annotationAttempt] = "ours"
	if _, err := api.create(t.Context(), ours); err == nil || !strings.Contains(err.Error(), "another process created it") {
		t.Errorf("creating a pod whose name exists: %v", err)
	}
	if err := api.remove(t.Context(), "one", "another uid"); err != nil || len(s.Pods()) != 1 {
		t.Errorf("%d pods, %v", len(s.Pods()), err)
	}
	if err := api.remove(t.Context(), "one", s.Pods()[0].UID); err != nil || len(s.Pods()) != 0 {
		t.Errorf("%d pods, %v", len(s.Pods()), err)
	}
}

// Before it repeats a call, the client waits as long as the server requests.
func TestKubernetesClientObeysRetryAfter(t *testing.T) {
	s := kubetest.Start(t)
	api := connected(t, s)
	s.Fail(kubetest.Fault{Verb: "get", Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, RetryAfter: 50})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // without a request, it would wait only 0.25 s at first
	defer cancel()
	if _, err := api.get(ctx, "one"); err == nil || s.Calls("get") != 1 {
		t.Errorf("%d calls, %v", s.Calls("get"), err)
	}
}

// In a pod, the service account takes precedence over a kubeconfig. Its path is fixed, so the test mounts an account
// there in a new mount namespace.
func TestKubernetesServiceAccountTakesPrecedence(t *testing.T) {
	_, err := envtest.Build(t, "kubernetes", map[string]any{"kubeconfig": inCluster}).Start(t.Context(), env.SandboxSpec{})
	if err == nil || !strings.Contains(err.Error(), "give this pod a service account") {
		t.Errorf("outside of a pod: %v", err)
	}
	if os.Getuid() != 0 {
		return // only root may mount
	}
	s := kubetest.Start(t)
	account := serviceAccount(t, s)
	for _, with := range []string{"", inCluster} {
		u, err := url.Parse(account.server)
		if err != nil {
			t.Fatal(err)
		}
		const mount = `mount -t tmpfs tmpfs /run && mkdir -p /run/secrets/kubernetes.io && cp -r "$0" /run/secrets/kubernetes.io/serviceaccount && exec "$@"`
		out, err := envtest.RunTestAs(t, "^TestServiceAccountInAMountNamespace$", 0,
			[]string{"TRACESMITH_TEST_IN_POD=" + with + "?", "KUBERNETES_SERVICE_HOST=" + u.Hostname(), "KUBERNETES_SERVICE_PORT=" + u.Port(), "KUBECONFIG=/no/such/file"},
			"unshare", "--mount", "sh", "-c", mount, account.dir)
		if err != nil || !strings.Contains(out, "--- PASS: TestServiceAccountInAMountNamespace") || s.Calls("list") == 0 {
			t.Errorf("%q: %v, %d lists: %s", with, err, s.Calls("list"), out)
		}
	}
}

// TestServiceAccountInAMountNamespace runs in the process that TestKubernetesServiceAccountTakesPrecedence starts.
func TestServiceAccountInAMountNamespace(t *testing.T) {
	with, inside := strings.CutSuffix(os.Getenv("TRACESMITH_TEST_IN_POD"), "?")
	if !inside {
		return // not started by TestKubernetesServiceAccountTakesPrecedence
	}
	d := envtest.Build(t, "kubernetes", map[string]any{"kubeconfig": with}).(*driver)
	api, err := d.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer api.release()
	if pods, err := api.list(t.Context(), labelManagedBy); err != nil || len(pods) != 0 || api.namespace != kubetest.Namespace {
		t.Errorf("%d pods in namespace %s, %v", len(pods), api.namespace, err)
	}
}

// account is a service account. dir has the files that a cluster mounts into a pod.
type account struct{ dir, server string }

func serviceAccount(t *testing.T, s *kubetest.Server) account {
	t.Helper()
	raw, err := os.ReadFile(s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string
				CA     string `json:"certificate-authority-data"`
			}
		}
		Users []struct{ User struct{ Token string } }
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	ca, err := base64.StdEncoding.DecodeString(config.Clusters[0].Cluster.CA)
	if err != nil {
		t.Fatal(err)
	}
	a := account{dir: t.TempDir(), server: config.Clusters[0].Cluster.Server}
	for name, text := range map[string]string{"ca.crt": string(ca), "token": config.Users[0].User.Token, "namespace": kubetest.Namespace} {
		if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return a
}
