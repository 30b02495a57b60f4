package kubernetes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// config are the settings of the driver. Neither they nor a pod contain anything of the host's environment, except for
// a value written env:NAME.
type config struct {
	Image string `json:"image"` // image for tasks that name none
	// Image that brings the guest into a pod; it needs sh and cat. Unset = the sandbox's image.
	HelperImage string `json:"helper_image"`
	// File, or in-cluster; unset = in-cluster in a pod, else KUBECONFIG, else ~/.kube/config.
	Kubeconfig string `json:"kubeconfig"`
	Context    string `json:"context"`   // context of the kubeconfig; unset = the current one
	Namespace  string `json:"namespace"` // namespace of the pods; unset = the namespace of the context, or of the pod that tracesmith runs in

	ImagePullSecrets []string          `json:"image_pull_secrets"` // names of secrets for pulls
	ImagePullPolicy  string            `json:"image_pull_policy"`  // Always, IfNotPresent or Never
	Labels           map[string]string `json:"labels"`             // labels of pods
	Annotations      map[string]string `json:"annotations"`        // annotations of pods
	OnlyNode         string            `json:"only_node"`          // node that every pod runs on, or env:NAME of a variable that holds it
	// Strategic merge patch, as kubectl patch takes it, for the spec of each pod: tolerations,
	// affinity, runtimeClassName and others.
	PodSpec json.RawMessage `json:"pod_spec"`
	// Uid and gid of programs; 0 = a different one for each pod. Linux counts processes per user on
	// a node, so pods with the same uid share one limit of processes.
	User int64 `json:"user"`
	// Resource requests of the sandbox; unset = a quarter of the CPU limit and half of the memory
	// limit.
	Requests map[string]string `json:"requests"`

	Deadline      seconds `json:"deadline"`       // lifetime of a pod, which the cluster enforces
	StartTimeout  seconds `json:"start_timeout"`  // time limit from the creation of a pod to an answering guest
	ScheduleGrace seconds `json:"schedule_grace"` // how long a pod may wait for a node
	NetworkPolicy bool    `json:"network_policy"` // put a policy into the namespace that denies sandboxes all traffic
}

// seconds is a duration of at least 1s in Go's notation: 90s, 6h.
type seconds time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *seconds) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err == nil && d < time.Second {
		err = fmt.Errorf("duration %q: must be at least 1s", text)
	}
	*s = seconds(d)
	return err
}

// The range of random uids, which is above those that systems and clusters assign. Programs get an even uid, and the
// relay of the same pod the next one.
const (
	firstUser = 1 << 30
	users     = 1 << 29
)

// user returns the uid and gid of the programs in a new pod.
func (c config) user() int64 {
	if c.User > 0 {
		return c.User
	}
	return firstUser + 2*rand.Int64N(users/2)
}

// inCluster is the value of the setting kubeconfig that selects the service account of the pod that this process runs
// in.
const inCluster = "in-cluster"

func defaultConfig() *config {
	return &config{
		Image: "tracesmith-base:latest", ImagePullPolicy: string(corev1.PullIfNotPresent), NetworkPolicy: true,
		Deadline: seconds(6 * time.Hour), StartTimeout: seconds(5 * time.Minute), ScheduleGrace: seconds(30 * time.Second),
	}
}

func (c config) check() error {
	var wrong []error
	bad := func(format string, a ...any) { wrong = append(wrong, fmt.Errorf(format, a...)) }
	if !slices.Contains([]string{"Always", "IfNotPresent", "Never"}, c.ImagePullPolicy) {
		bad("image_pull_policy %q: choose Always, IfNotPresent or Never", c.ImagePullPolicy)
	}
	for name, value := range c.Labels {
		if said := append(validation.IsQualifiedName(name), validation.IsValidLabelValue(value)...); len(said) > 0 {
			bad("label %s=%s: %s", name, value, strings.Join(said, "; "))
		}
		if strings.HasPrefix(name, namePrefix) || name == labelManagedBy {
			bad("label %q: this name is reserved", name)
		}
	}
	for name := range c.Annotations {
		if said := validation.IsQualifiedName(strings.ToLower(name)); len(said) > 0 || strings.HasPrefix(name, namePrefix) {
			bad("annotation %q: not an allowed name: %s", name, strings.Join(said, "; "))
		}
	}
	for name, value := range c.Requests {
		if _, err := resource.ParseQuantity(value); err != nil {
			bad("requests: %s: %q: write a quantity such as 500m or 1Gi", name, value)
		}
	}
	if c.User < 0 || c.User >= 1<<31-1 {
		bad("user %d: write a uid, or 0 to give each pod another one; programs must not run as root", c.User)
	}
	if len(c.PodSpec) > 0 {
		dec := json.NewDecoder(bytes.NewReader(c.PodSpec))
		dec.DisallowUnknownFields()
		var typed corev1.PodSpec
		if err := dec.Decode(&typed); err != nil {
			bad("pod_spec: not a part of a pod's spec: %w", err)
		}
		if typed.HostNetwork || typed.HostPID || typed.HostIPC || typed.ShareProcessNamespace != nil && *typed.ShareProcessNamespace {
			bad("pod_spec: hostNetwork, hostPID, hostIPC and shareProcessNamespace would break the isolation of the sandbox: remove them")
		}
	}
	return errors.Join(wrong...)
}

// node returns the name of the only allowed node, or "" if all are allowed.
func (c config) node() (string, error) {
	name, indirect := strings.CutPrefix(c.OnlyNode, "env:")
	if !indirect {
		return name, nil
	}
	node := os.Getenv(name)
	if node == "" {
		return "", fmt.Errorf("only_node: the environment variable %s is not set: let the pod's downward API set it to spec.nodeName", name)
	}
	return node, nil
}

// dial returns the address and credentials of the API server, and the namespace.
func (c config) dial() (*rest.Config, string, error) {
	cfg, namespace, err := c.locate()
	if err != nil {
		return nil, "", err
	}
	cfg.QPS = -1 // no limit in the client, because retry obeys the server's limits
	cfg.UserAgent = "tracesmith"
	cfg.WarningHandler = rest.NoWarnings{}
	return cfg, cmp.Or(c.Namespace, namespace, corev1.NamespaceDefault), nil
}

func (c config) locate() (*rest.Config, string, error) {
	const account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	if c.Kubeconfig == inCluster || c.Kubeconfig == "" && os.Getenv("KUBERNETES_SERVICE_HOST") != "" && exists(account+"token") {
		cfg, err := rest.InClusterConfig()
		if err != nil {
			return nil, "", fmt.Errorf("kubeconfig is %s: %w: give this pod a service account, or name a kubeconfig file", inCluster, err)
		}
		raw, _ := os.ReadFile(account + "namespace") // without it, the default applies
		return cfg, strings.TrimSpace(string(raw)), nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	if rules.WarnIfAllMissing = false; c.Kubeconfig != "" && !exists(c.Kubeconfig) {
		return nil, "", fmt.Errorf("no kubeconfig at %s: set sandbox.with.kubeconfig to an existing file", c.Kubeconfig)
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: c.Context, Context: clientcmdapi.Context{Namespace: c.Namespace}})
	cfg, err := loader.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, "", fmt.Errorf("no kubeconfig (looked at %s) and not in a cluster: set KUBECONFIG or sandbox.with.kubeconfig, or choose --sandbox bubblewrap",
			strings.Join(rules.Precedence, ", "))
	case clientcmd.IsContextNotFound(err), err != nil && c.Context != "" && strings.Contains(err.Error(), "does not exist"):
		return nil, "", fmt.Errorf("%w: see `kubectl config get-contexts` and set sandbox.with.context", err)
	case err != nil:
		return nil, "", fmt.Errorf("reading the kubeconfig: %w: set KUBECONFIG or sandbox.with.kubeconfig to a valid kubeconfig", err)
	}
	namespace, _, err := loader.Namespace()
	return cfg, namespace, err
}

func exists(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}
