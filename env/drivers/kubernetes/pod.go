package kubernetes

import (
	"cmp"
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
	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/env/guest"
)

// directory is a writable directory of the sandbox, on a tmpfs with a size limit. The root of the volume belongs to
// root. If mode is set, the sandbox gets a directory inside the volume instead, which belongs to the programs' user.
type directory struct {
	name, path string
	size       int64
	mode       string // "" = the volume's root, which all users may write to
}

func directories(spec env.SandboxSpec) []directory {
	disk := spec.Limits.DiskBytes
	return []directory{
		{"workspace", spec.Workdir, drivers.DiskShare(disk, 10), "0755"},
		{"tmp", "/tmp", drivers.DiskShare(disk, 4), ""}, // the volume's root, whose permissions programs cannot remove
		{"home", drivers.Home, drivers.DiskShare(disk, 1), "0755"},
		{"shm", "/dev/shm", drivers.DiskShare(disk, 1), ""},
		{"bin", drivers.BinPath, 1 << 20, ""},
	}
}

// pod returns the pod of a sandbox.
func (c config) pod(spec env.SandboxSpec, guestBytes int64) (*corev1.Pod, error) {
	network := "none"
	if spec.Network {
		network = "any"
	}
	labels, annotations := maps.Clone(c.Labels), maps.Clone(c.Annotations)
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(labels, map[string]string{
		labelManagedBy: managedBy, labelHost: drivers.MachineID(), labelSandbox: labelValue(spec.Label), labelNetwork: network,
	})
	name := drivers.RandomName()
	maps.Copy(annotations, map[string]string{annotationOwner: drivers.Self().String(), annotationSandbox: spec.Label, annotationAttempt: name})
	podSpec, err := c.podSpec(spec, guestBytes)
	if err != nil {
		return nil, err
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "tracesmith-" + name, Labels: labels, Annotations: annotations},
		Spec:       *podSpec,
	}, nil
}

func (c config) podSpec(spec env.SandboxSpec, guestBytes int64) (*corev1.PodSpec, error) {
	helper := cmp.Or(c.HelperImage, spec.Image)
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
	host := corev1.VolumeMount{Name: "host", MountPath: guestDir}
	s.InitContainers = []corev1.Container{c.helperContainer(initName, helper, user, room, host)}
	deliver := &s.InitContainers[0]
	script := "umask 022; "
	for _, d := range directories(spec) {
		if d.mode != "" {
			deliver.VolumeMounts = append(deliver.VolumeMounts, corev1.VolumeMount{Name: d.name, MountPath: path.Join(volumesDir, d.name)})
			script += fmt.Sprintf("mkdir -m %s %s && ", d.mode, path.Join(volumesDir, d.name, "own"))
		}
	}
	deliver.Command = []string{"sh", "-c", script + "while ! test -x " + guestPath + "; do sleep 0.1 || sleep 1; done"}
	relay := c.helperContainer(relayName, helper, user+1, room, host)
	relay.Command = []string{guestPath, guest.ServeArg, "-hold", time.Duration(c.StartTimeout).String()}
	host.ReadOnly = true
	sandbox.VolumeMounts = append(sandbox.VolumeMounts, host)
	s.Containers = []corev1.Container{*sandbox, relay}
	return c.patch(s)
}

// sandboxContainer returns the container that runs the guest, and adds its volumes to s.
func (c config) sandboxContainer(spec env.SandboxSpec, user int64, s *corev1.PodSpec) (*corev1.Container, error) {
	l := spec.Limits
	k := &corev1.Container{
		Name: sandboxName, Image: spec.Image, ImagePullPolicy: corev1.PullPolicy(c.ImagePullPolicy), WorkingDir: spec.Workdir,
		Command:         append([]string{guestPath}, drivers.GuestArgs(spec.Label, "-dial", socketPath, "-inherit", drivers.BinPath)...),
		Env:             []corev1.EnvVar{{Name: "GOMAXPROCS", Value: "2"}},
		SecurityContext: restrictedContext(user),
		Resources:       corev1.ResourceRequirements{Limits: corev1.ResourceList{}, Requests: corev1.ResourceList{}},
	}
	limits, requests := k.Resources.Limits, k.Resources.Requests
	if l.MemoryBytes > 0 && l.DiskBytes > 0 {
		// tmpfs counts as memory of the container. The watchdog enforces MemoryBytes, and the cgroup is a second line
		// of defense.
		limits[corev1.ResourceMemory] = bytesQuantity(2*l.MemoryBytes + l.DiskBytes + 64<<20)
		requests[corev1.ResourceMemory] = bytesQuantity((l.MemoryBytes + l.DiskBytes + 64<<20) / 2)
	}
	if l.CPUs > 0 {
		limits[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(l.CPUs*1000), resource.DecimalSI)
		requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(max(int64(l.CPUs*250), 1), resource.DecimalSI)
	}
	// The image is read-only and every directory is a tmpfs. Only logs need storage, and nothing writes to them.
	limits[corev1.ResourceEphemeralStorage] = resource.MustParse("64Mi")
	requests[corev1.ResourceEphemeralStorage] = resource.MustParse("16Mi")
	for name, value := range c.Requests {
		q, err := resource.ParseQuantity(value)
		if err != nil {
			return nil, fmt.Errorf("requests: %s: %w", name, err)
		}
		requests[corev1.ResourceName(name)] = q
	}
	for _, d := range directories(spec) {
		s.Volumes = append(s.Volumes, emptyDir(d.name, corev1.StorageMediumMemory, d.size))
		mount := corev1.VolumeMount{Name: d.name, MountPath: d.path}
		if d.mode != "" {
			mount.SubPath = "own"
		}
		k.VolumeMounts = append(k.VolumeMounts, mount)
	}
	return k, nil
}

// helperContainer returns a container that runs a program of the driver beside the sandbox container.
func (c config) helperContainer(name, image string, user, room int64, host corev1.VolumeMount) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullPolicy(c.ImagePullPolicy), WorkingDir: "/",
		SecurityContext: restrictedContext(user), VolumeMounts: []corev1.VolumeMount{host},
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

// restrictedContext returns a security context without any privilege that a container does not need.
func restrictedContext(user int64) *corev1.SecurityContext {
	yes, no := true, false
	return &corev1.SecurityContext{
		RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user,
		AllowPrivilegeEscalation: &no, Privileged: &no, ReadOnlyRootFilesystem: &yes,
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// patch merges the setting pod_spec into s.
func (c config) patch(s *corev1.PodSpec) (*corev1.PodSpec, error) {
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

// labelValue converts text to a valid value of a label. It replaces invalid characters by hyphens and drops characters
// after the 63rd.
func labelValue(text string) string {
	valid := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, text)
	return strings.Trim(valid[:min(len(valid), 63)], "-._")
}
