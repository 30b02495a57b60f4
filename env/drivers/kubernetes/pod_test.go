package kubernetes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/kubetest"
)

// startSandbox starts a sandbox and returns it with the pod that the server has.
func startSandbox(t *testing.T, s *kubetest.Server, with map[string]any, spec env.SandboxSpec) (env.Sandbox, corev1.Pod) {
	t.Helper()
	sb, err := kube(t, s, with).Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	envtest.CloseAtEnd(t, sb)
	return sb, s.Pods()[0]
}

func TestKubernetesOptions(t *testing.T) {
	t.Setenv("THIS_NODE", "node-7")
	_, p := startSandbox(t, kubetest.Start(t), map[string]any{
		"context": "test", "namespace": kubetest.Namespace, "image": "base:1", "helper_image": "shell:1", "image_pull_policy": "Never",
		"image_pull_secrets": []any{"registry"}, "labels": map[string]any{"team": "a"}, "annotations": map[string]any{"Note": "b"},
		"only_node": "env:THIS_NODE",
		"pod_spec": map[string]any{
			"tolerations":       []any{map[string]any{"key": "CriticalAddonsOnly", "operator": "Exists"}},
			"nodeSelector":      map[string]any{"disk": "fast"},
			"priorityClassName": "batch", "runtimeClassName": "gvisor",
			"containers": []any{map[string]any{"name": "sandbox", "env": []any{map[string]any{"name": "MORE", "value": "1"}}}},
		},
	}, env.SandboxSpec{Label: "run 7/task:ä"})
	s := p.Spec
	if p.Namespace != kubetest.Namespace || p.Labels["team"] != "a" || p.Annotations["Note"] != "b" || p.Annotations[annotationSandbox] != "run 7/task:ä" ||
		p.Labels[labelSandbox] != "run-7-task" || p.Labels[labelManagedBy] != "tracesmith" || p.Labels[labelHost] != drivers.MachineID() {
		t.Errorf("names: %+v", p.ObjectMeta)
	}
	if s.ImagePullSecrets[0].Name != "registry" || s.Containers[0].ImagePullPolicy != "Never" || s.Containers[0].Image != "base:1" || s.Containers[1].Image != "shell:1" {
		t.Errorf("images: %+v", s)
	}
	if n := s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0]; n.Values[0] != "node-7" {
		t.Errorf("node: %+v", n)
	}
	if s.Tolerations[0].Key != "CriticalAddonsOnly" || s.NodeSelector["disk"] != "fast" || s.PriorityClassName != "batch" || *s.RuntimeClassName != "gvisor" ||
		len(s.Containers) != 2 || len(s.Containers[0].VolumeMounts) == 0 || len(s.Containers[0].Env) != 2 {
		t.Errorf("pod_spec was not merged: %+v", s)
	}
	if *s.AutomountServiceAccountToken || *s.EnableServiceLinks || s.HostNetwork || s.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("the pod is not confined: %+v", s)
	}
	for _, c := range append(s.Containers, s.InitContainers...) {
		sc := c.SecurityContext
		if !*sc.RunAsNonRoot || *sc.RunAsUser < firstUser || *sc.AllowPrivilegeEscalation || !*sc.ReadOnlyRootFilesystem || sc.Capabilities.Drop[0] != "ALL" ||
			sc.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("container %s is not confined: %+v", c.Name, sc)
		}
	}
}

// RLIMIT_NPROC counts the processes of a user on a node, so each pod needs its own user.
func TestKubernetesPodsHaveDistinctUsers(t *testing.T) {
	seen := map[int64]bool{}
	for range 3 {
		p, err := defaultConfig().pod(env.SandboxSpec{Workdir: "/w", Limits: env.DefaultLimits}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Spec.Containers {
			seen[*c.SecurityContext.RunAsUser] = true
		}
	}
	if len(seen) != 6 { // two users for each pod: programs and relay
		t.Errorf("users %v", seen)
	}
}

func TestKubernetesRefusesWrongOptions(t *testing.T) {
	s := kubetest.Start(t)
	for want, with := range map[string]map[string]any{
		"kubectl config get-contexts": {"context": "nowhere"},
		"no kubeconfig at":            {"kubeconfig": "/no/such/file"},
		"THIS_NODE is not set":        {"only_node": "env:THIS_NODE"},
	} {
		if _, err := kube(t, s, with).Start(t.Context(), env.SandboxSpec{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", with, err)
		}
	}
	for want, with := range map[string]map[string]any{
		"pod_spec":              {"pod_spec": map[string]any{"toleration": []any{}}},
		"hostNetwork":           {"pod_spec": map[string]any{"hostNetwork": true}},
		"this name is reserved": {"labels": map[string]any{annotationOwner: "me"}},
		"choose Always":         {"image_pull_policy": "sometimes"},
		"write a quantity":      {"requests": map[string]any{"cpu": "half"}},
		"at least 1s":           {"deadline": "1ms"},
		"must not run as root":  {"user": -1},
	} {
		if _, err := env.Drivers.Build("kubernetes", with, struct{}{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", with, err)
		}
	}
	if _, err := kube(t, s, nil).Start(t.Context(), env.SandboxSpec{Mounts: []env.Mount{{Host: "/tmp", Path: "/opt/x"}}}); err == nil || !strings.Contains(err.Error(), "into its image") || len(s.Pods()) > 0 {
		t.Errorf("a mount of this host: %v, %d pods", err, len(s.Pods()))
	}
	// Without a kubeconfig, the error says what to set.
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	_, err := envtest.Driver(t, "kubernetes").Start(t.Context(), env.SandboxSpec{})
	if err == nil || !strings.Contains(err.Error(), "set KUBECONFIG") {
		t.Errorf("no kubeconfig: %v", err)
	}
}

func TestKubernetesPodHasRequestsAndLimits(t *testing.T) {
	_, p := startSandbox(t, kubetest.Start(t), map[string]any{"deadline": "90m", "requests": map[string]any{"cpu": "125m", "example.com/gpu": "1"}},
		env.SandboxSpec{Limits: env.Limits{MemoryBytes: 1 << 30, DiskBytes: 512 << 20, CPUs: 1.5, Processes: 50}})
	if *p.Spec.ActiveDeadlineSeconds != 5400 {
		t.Errorf("deadline %d", *p.Spec.ActiveDeadlineSeconds)
	}
	r := p.Spec.Containers[0].Resources
	for name, want := range map[corev1.ResourceName]string{"memory": "2624Mi", "cpu": "1500m", "ephemeral-storage": "64Mi"} {
		if got := r.Limits[name]; got.String() != want {
			t.Errorf("limit of %s: %s, want %s", name, got.String(), want)
		}
	}
	for name, want := range map[corev1.ResourceName]string{"memory": "800Mi", "cpu": "125m", "example.com/gpu": "1"} {
		if got := r.Requests[name]; got.String() != want {
			t.Errorf("request of %s: %s, want %s", name, got.String(), want)
		}
	}
	for _, v := range p.Spec.Volumes {
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil {
			t.Errorf("volume %s has no limit", v.Name)
		}
		if v.Name == "workspace" && (v.EmptyDir.SizeLimit.Value() != 320<<20 || v.EmptyDir.Medium != corev1.StorageMediumMemory) {
			t.Errorf("workspace: %+v", v.EmptyDir)
		}
	}
}

// Neither the pod object nor the environment of its programs contains anything of the host's environment, and variables
// in pod_spec are not expanded.
func TestKubernetesPodsContainNothingOfTheHost(t *testing.T) {
	const secret = "s3cret-of-the-host"
	t.Setenv("HOST_SECRET", secret)
	t.Setenv("PATH", os.Getenv("PATH")+":/only/on/this/host")
	s := kubetest.Start(t)
	sb, p := startSandbox(t, s, map[string]any{"pod_spec": map[string]any{
		"containers": []any{map[string]any{"name": "sandbox", "env": []any{map[string]any{"name": "T", "value": "{{ env.HOST_SECRET }} $HOST_SECRET"}}}},
	}}, env.SandboxSpec{})
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sb.Run(t.Context(), env.Command{Args: []string{"env"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(raw), string(r.Output)} {
		for _, leak := range []string{secret, "/only/on/this/host", s.Kubeconfig(), "KUBERNETES_"} {
			if strings.Contains(text, leak) {
				t.Errorf("%q is in %s", leak, text)
			}
		}
	}
	for _, want := range []string{kubetest.ImageEnv, "T={{ env.HOST_SECRET }} $HOST_SECRET", "PATH=" + drivers.BinPath + ":/usr/local/bin"} {
		if !strings.Contains(string(r.Output), want+"\n") && !strings.Contains(string(r.Output), want+":") {
			t.Errorf("no %q in %s", want, r.Output)
		}
	}
}

// Building the driver does not create a client.
func TestKubernetesClientIsCreatedAtFirstUse(t *testing.T) {
	t.Setenv("KUBECONFIG", "/no/such/file")
	if d := envtest.Driver(t, "kubernetes").(*driver); d.api != nil {
		t.Error("a client was created before it was needed")
	}
}

// If /tmp belonged to the programs' user, a program could remove its permissions, and later commands could not use it.
func TestKubernetesSharedDirectoriesBelongToRoot(t *testing.T) {
	_, p := startSandbox(t, kubetest.Start(t), nil, env.SandboxSpec{})
	found := 0
	for _, m := range p.Spec.Containers[0].VolumeMounts {
		if m.MountPath == "/tmp" || m.MountPath == "/dev/shm" {
			found++
			if m.SubPath != "" {
				t.Errorf("%s is a directory inside its volume, which belongs to the programs' user", m.MountPath)
			}
		}
	}
	if found != 2 {
		t.Errorf("found %d of 2 directories", found)
	}
}
