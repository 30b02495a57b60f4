package kubernetes

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// podError says why a pod cannot become a sandbox and what to do about it.
type podError struct{ pod, reason, message, remedy string }

func (e *podError) Error() string {
	text := fmt.Sprintf("pod %s: %s", e.pod, e.reason)
	if e.message != "" {
		text += ": " + printable(e.message)
	}
	if e.remedy != "" {
		text += ": " + e.remedy
	}
	return text
}

// printable shortens text from the cluster and puts it on one line, for a message.
func printable(s string) string {
	line := strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	return line[:min(len(line), 500)]
}

// deletedError means that another client has deleted the pod.
func deletedError(name string) error {
	return &podError{name, "it was deleted while it started", "", "check what deletes pods in this namespace"}
}

// failureRemedies maps the reasons why a container cannot start to what to do about them.
var failureRemedies = map[string]string{
	"ErrImagePull":               "check the image's name, image_pull_secrets, and whether the nodes can reach the registry",
	"ImagePullBackOff":           "check the image's name, image_pull_secrets, and whether the nodes can reach the registry",
	"InvalidImageName":           "correct the image's name",
	"ErrImageNeverPull":          "load the image onto the node, or set image_pull_policy to pull it",
	"CreateContainerConfigError": "a secret, config map or user that the pod needs does not exist: check pod_spec",
	"CreateContainerError":       "the node's container runtime refused: check pod_spec and runtimeClassName",
	"RunContainerError":          "the program could not be started: an image without sh needs helper_image, and all images must be for the nodes' architecture",
	"CrashLoopBackOff":           "the container ends repeatedly: see `kubectl logs`",
}

// permanentFailure returns why a pod can no longer become ready, or nil if it still can.
func permanentFailure(p *corev1.Pod) error {
	if p.DeletionTimestamp != nil {
		return deletedError(p.Name)
	}
	all := append(append([]corev1.ContainerStatus{}, p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...)
	for _, c := range all {
		if w := c.State.Waiting; w != nil {
			if remedy, known := failureRemedies[w.Reason]; known {
				return &podError{p.Name, w.Reason, w.Message, remedy}
			}
		}
		if t := c.State.Terminated; t != nil && (c.Name != initName || t.ExitCode != 0) {
			remedy := ""
			switch {
			case t.Reason == "OOMKilled":
				remedy = "raise sandbox.memory"
			case t.Reason == "StartError" || t.Reason == "ContainerCannotRun" || c.Name == initName:
				remedy = failureRemedies["RunContainerError"]
			}
			return &podError{p.Name, fmt.Sprintf("container %s ended (%s, exit code %d)", c.Name, t.Reason, t.ExitCode), t.Message, remedy}
		}
	}
	if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		return &podError{p.Name, "it ended: " + string(p.Status.Phase) + " " + p.Status.Reason, p.Status.Message, phaseRemedy(p.Status.Reason)}
	}
	return nil
}

func phaseRemedy(reason string) string {
	switch {
	case reason == "DeadlineExceeded":
		return "raise sandbox.with.deadline"
	case strings.HasPrefix(reason, "OutOf"), reason == "NodeAffinity":
		return "the node accepts no more pods: lower sandbox.with.requests, or allow other nodes"
	}
	return ""
}

// unschedulable returns an error if no node accepts the pod now.
func unschedulable(p *corev1.Pod) error {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &podError{p.Name, "Unschedulable", c.Message,
				"lower sandbox.memory, sandbox.cpus or sandbox.with.requests, widen pod_spec or only_node, add nodes, or raise schedule_grace if the cluster adds nodes automatically"}
		}
	}
	return nil
}

// running returns a function that reports whether the named container of a pod is running.
func running(name string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
			for _, c := range list {
				if c.Name == name && c.State.Running != nil {
					return true
				}
			}
		}
		return false
	}
}

// endReason returns what ended a pod, according to its status. The reason is "" if the cause was inside the pod: its
// programs used up the memory, or the guest ended by itself. sure is false if the status does not say what ended the
// pod.
func endReason(p *corev1.Pod) (reason string, sure bool) {
	disruption := ""
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			disruption = strings.TrimSpace(" (" + c.Reason + ": " + printable(c.Message) + ")")
		}
	}
	switch {
	case p.DeletionTimestamp != nil:
		return strings.TrimSpace("pod " + p.Name + " was deleted " + disruption), true
	case p.Status.Phase == corev1.PodFailed && p.Status.Reason != "":
		return "pod " + p.Name + " failed: " + p.Status.Reason + ": " + printable(p.Status.Message), true
	case disruption != "":
		return "pod " + p.Name + " was disrupted " + disruption, true
	case p.Status.Phase == corev1.PodUnknown:
		return "the node of pod " + p.Name + " is lost", true
	}
	for _, c := range p.Status.ContainerStatuses {
		t := c.State.Terminated
		if t == nil || c.Name != sandboxName {
			continue
		}
		if t.ExitCode == 128+9 && t.Reason != "OOMKilled" {
			return "container " + c.Name + " of pod " + p.Name + " was killed from outside: exit code " + strconv.Itoa(int(t.ExitCode)), true
		}
		return "", true
	}
	return "", false
}

// outOfMemory reports whether the programs of the sandbox used up its memory.
func outOfMemory(p *corev1.Pod) bool {
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && c.Name == sandboxName && t.Reason == "OOMKilled" {
			return true
		}
	}
	return false
}

// imageDigest returns the digest of the sandbox's image, as its node reports it.
func imageDigest(p *corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == sandboxName {
			return c.ImageID
		}
	}
	return ""
}

// finishedGrace is how long an ended pod is kept, so that its owner can inspect it.
const finishedGrace = 10 * time.Minute

// endedLongAgo reports whether a pod ended more than finishedGrace ago.
func endedLongAgo(p *corev1.Pod, now time.Time) bool {
	if p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded {
		return false
	}
	last := p.CreationTimestamp.Time
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	return now.Sub(last) > finishedGrace
}
