package drivers

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest"
)

// Names on our pods. The owner does not fit a label's 63 characters.
const (
	kubeManager   = "app.kubernetes.io/managed-by"
	kubeManagerIs = "tracesmith"
	kubeMark      = "tracesmith/"
	kubeHost      = kubeMark + "host"    // label: the machine of the owner
	kubeFor       = kubeMark + "for"     // label: the sandbox's label, made fit
	kubeNetwork   = kubeMark + "network" // label: none or any
	kubeOwner     = kubeMark + "owner"   // annotation
	kubeLabel     = kubeMark + "label"   // annotation: as it was given
	kubeAttempt   = kubeMark + "attempt" // annotation: knows our own create again
)

// Containers of a pod. The guest is the first process of the sandbox container,
// so that no program can kill it. What the host says reaches it through a socket
// in a shared volume from a relay in a container beside it, which the host execs:
// an attached first process would have every byte written to the node's logs.
const (
	kubeSandbox = "sandbox"
	kubeRelay   = "relay"
	kubeInit    = "deliver"

	kubeGuestDir = "/run/tracesmith/host" // shared, read-only to the sandbox
	kubeGuest    = kubeGuestDir + "/guest"
	kubeSocket   = kubeGuestDir + "/socket"
	kubeVolumes  = "/volumes" // where the init container makes directories
)

// kubeDir is one writable directory of the sandbox: a sized tmpfs. Programs get a
// directory inside it that is theirs, because the volume's own belongs to root.
type kubeDir struct {
	name, place string
	size        int64
	mode        string // "" = the volume's root, writable by all
}

func kubeDirs(spec env.SandboxSpec) []kubeDir {
	disk := spec.Limits.DiskBytes
	return []kubeDir{
		{"workspace", spec.Workdir, share(disk, 10), "0755"},
		{"tmp", "/tmp", share(disk, 4), ""}, // the volume's: programs cannot lock it
		{"home", home, share(disk, 1), "0755"},
		{"shm", "/dev/shm", share(disk, 1), ""},
		{"bin", binPath, 1 << 20, ""},
	}
}

// pod describes the pod of one sandbox.
func (c kubernetesConfig) pod(spec env.SandboxSpec, guestBytes int64) (*corev1.Pod, error) {
	network := "none"
	if spec.Network {
		network = "any"
	}
	labels, notes := maps.Clone(c.Labels), maps.Clone(c.Annotations)
	if labels == nil {
		labels = map[string]string{}
	}
	if notes == nil {
		notes = map[string]string{}
	}
	maps.Copy(labels, map[string]string{
		kubeManager: kubeManagerIs, kubeHost: here().host, kubeFor: labelValue(spec.Label), kubeNetwork: network,
	})
	name := randomName()
	maps.Copy(notes, map[string]string{kubeOwner: self().String(), kubeLabel: spec.Label, kubeAttempt: name})
	podSpec, err := c.podSpec(spec, guestBytes)
	if err != nil {
		return nil, err
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "tracesmith-" + name, Labels: labels, Annotations: notes},
		Spec:       *podSpec,
	}, nil
}

func (c kubernetesConfig) podSpec(spec env.SandboxSpec, guestBytes int64) (*corev1.PodSpec, error) {
	helper := c.HelperImage
	if helper == "" {
		helper = spec.Image
	}
	node, err := c.node()
	if err != nil {
		return nil, err
	}
	deadline, grace, yes, no := int64(time.Duration(c.Deadline)/time.Second), int64(1), true, false
	user := c.user()
	s := &corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Hostname: "sandbox",
		ActiveDeadlineSeconds: &deadline, TerminationGracePeriodSeconds: &grace,
		EnableServiceLinks: &no, AutomountServiceAccountToken: &no,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	for _, secret := range c.ImagePullSecrets {
		s.ImagePullSecrets = append(s.ImagePullSecrets, corev1.LocalObjectReference{Name: secret})
	}
	if node != "" {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
			}}},
		}}}
	}
	sandbox, err := c.sandboxContainer(spec, user, s)
	if err != nil {
		return nil, err
	}
	room := guestBytes + 64<<20
	s.Volumes = append(s.Volumes, emptyDir("host", "", room))
	host := corev1.VolumeMount{Name: "host", MountPath: kubeGuestDir}
	s.InitContainers = []corev1.Container{c.helper(kubeInit, helper, user, room, host)}
	deliver := &s.InitContainers[0]
	script := "umask 022; "
	for _, d := range kubeDirs(spec) {
		if d.mode != "" {
			deliver.VolumeMounts = append(deliver.VolumeMounts, corev1.VolumeMount{Name: d.name, MountPath: path.Join(kubeVolumes, d.name)})
			script += fmt.Sprintf("mkdir -m %s %s && ", d.mode, path.Join(kubeVolumes, d.name, "own"))
		}
	}
	deliver.Command = []string{"sh", "-c", script + "while ! test -x " + kubeGuest + "; do sleep 0.1 || sleep 1; done"}
	relay := c.helper(kubeRelay, helper, user+1, room, host)
	relay.Command = []string{kubeGuest, guest.ServeArg, "-hold", time.Duration(c.StartTimeout).String()}
	host.ReadOnly = true
	sandbox.VolumeMounts = append(sandbox.VolumeMounts, host)
	s.Containers = []corev1.Container{*sandbox, relay}
	return c.patch(s)
}

// sandboxContainer runs the guest, which waits for the relay's socket.
func (c kubernetesConfig) sandboxContainer(spec env.SandboxSpec, user int64, s *corev1.PodSpec) (*corev1.Container, error) {
	l := spec.Limits
	k := &corev1.Container{
		Name: kubeSandbox, Image: spec.Image, ImagePullPolicy: corev1.PullPolicy(c.ImagePullPolicy), WorkingDir: spec.Workdir,
		Command:         append([]string{kubeGuest}, guestArgs(spec.Label, "-dial", kubeSocket, "-inherit", binPath)...),
		Env:             []corev1.EnvVar{{Name: "GOMAXPROCS", Value: "2"}},
		SecurityContext: locked(user),
		Resources:       corev1.ResourceRequirements{Limits: corev1.ResourceList{}, Requests: corev1.ResourceList{}},
	}
	limits, requests := k.Resources.Limits, k.Resources.Requests
	if l.MemoryBytes > 0 && l.DiskBytes > 0 {
		// tmpfs counts as memory of the container; the watchdog holds programs to
		// MemoryBytes, the cgroup is the fence behind it.
		limits[corev1.ResourceMemory] = bytesQuantity(2*l.MemoryBytes + l.DiskBytes + 64<<20)
		requests[corev1.ResourceMemory] = bytesQuantity((l.MemoryBytes + l.DiskBytes + 64<<20) / 2)
	}
	if l.CPUs > 0 {
		limits[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(l.CPUs*1000), resource.DecimalSI)
		requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(max(int64(l.CPUs*250), 1), resource.DecimalSI)
	}
	// The image is read-only and every directory a tmpfs: what is left are logs,
	// into which nothing is written.
	limits[corev1.ResourceEphemeralStorage] = resource.MustParse("64Mi")
	requests[corev1.ResourceEphemeralStorage] = resource.MustParse("16Mi")
	for name, value := range c.Requests {
		q, err := resource.ParseQuantity(value)
		if err != nil {
			return nil, fmt.Errorf("requests: %s: %w", name, err)
		}
		requests[corev1.ResourceName(name)] = q
	}
	for _, d := range kubeDirs(spec) {
		s.Volumes = append(s.Volumes, emptyDir(d.name, corev1.StorageMediumMemory, d.size))
		mount := corev1.VolumeMount{Name: d.name, MountPath: d.place}
		if d.mode != "" {
			mount.SubPath = "own"
		}
		k.VolumeMounts = append(k.VolumeMounts, mount)
	}
	return k, nil
}

// helper is a container of ours beside the sandbox.
func (c kubernetesConfig) helper(name, image string, user, room int64, host corev1.VolumeMount) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullPolicy(c.ImagePullPolicy), WorkingDir: "/",
		SecurityContext: locked(user), VolumeMounts: []corev1.VolumeMount{host},
		Env: []corev1.EnvVar{{Name: "GOMAXPROCS", Value: "2"}},
		Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("256Mi"),
				corev1.ResourceEphemeralStorage: bytesQuantity(room + 64<<20),
			},
			Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
				corev1.ResourceEphemeralStorage: bytesQuantity(room),
			},
		},
	}
}

func emptyDir(name string, medium corev1.StorageMedium, size int64) corev1.Volume {
	v := &corev1.EmptyDirVolumeSource{Medium: medium}
	if size > 0 {
		q := bytesQuantity(size)
		v.SizeLimit = &q
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: v}}
}

func bytesQuantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }

// locked takes every privilege a container can do without.
func locked(user int64) *corev1.SecurityContext {
	yes, no := true, false
	return &corev1.SecurityContext{
		RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user,
		AllowPrivilegeEscalation: &no, Privileged: &no, ReadOnlyRootFilesystem: &yes,
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// patch merges the configured fragment.
func (c kubernetesConfig) patch(s *corev1.PodSpec) (*corev1.PodSpec, error) {
	if len(c.PodSpec) == 0 {
		return s, nil
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergePatch(raw, c.PodSpec, corev1.PodSpec{})
	if err != nil {
		return nil, fmt.Errorf("pod_spec: merging it into the pod's spec: %w", err)
	}
	out := &corev1.PodSpec{}
	return out, json.Unmarshal(merged, out)
}

// labelValue makes text fit for the value of a label.
func labelValue(text string) string {
	fit := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, text)
	return strings.Trim(fit[:min(len(fit), 63)], "-._")
}
