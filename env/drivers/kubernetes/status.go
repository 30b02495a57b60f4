package kubernetes

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// podError says why a pod cannot become a sandbox, and what to do about it.
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

// printable shortens text of the cluster to one line of a message.
func printable(s string) string {
	line := strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	return line[:min(len(line), 500)]
}

func gone(name string) error {
	return &podError{name, "it was deleted while it started", "", "see who cleans up this namespace"}
}

// waitReasons are the lasting states of a container, each with its remedy.
var waitReasons = map[string]string{
	"ErrImagePull":               "check the image's name, that the nodes reach its registry, and image_pull_secrets",
	"ImagePullBackOff":           "check the image's name, that the nodes reach its registry, and image_pull_secrets",
	"InvalidImageName":           "correct the image's name",
	"ErrImageNeverPull":          "load the image onto the node, or let image_pull_policy pull it",
	"CreateContainerConfigError": "a secret, config map or user the pod needs is not there: check pod_spec",
	"CreateContainerError":       "the node's container runtime refused: check pod_spec and runtimeClassName",
	"RunContainerError":          "the program could not be started: an image without sh needs helper_image, and all images must be made for the nodes' architecture",
	"CrashLoopBackOff":           "it starts and ends again: see `kubectl logs`",
}

// permanentFailure returns why a pod can no longer become ready, or nil if it still can.
func permanentFailure(p *corev1.Pod) error {
	if p.DeletionTimestamp != nil {
		return gone(p.Name)
	}
	all := append(append([]corev1.ContainerStatus{}, p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...)
	for _, c := range all {
		if w := c.State.Waiting; w != nil {
			if remedy, known := waitReasons[w.Reason]; known {
				return &podError{p.Name, w.Reason, w.Message, remedy}
			}
		}
		if t := c.State.Terminated; t != nil && (c.Name != initName || t.ExitCode != 0) {
			remedy := ""
			switch {
			case t.Reason == "OOMKilled":
				remedy = "raise sandbox.memory"
			case t.Reason == "StartError" || t.Reason == "ContainerCannotRun" || c.Name == initName:
				remedy = waitReasons["RunContainerError"]
			}
			return &podError{p.Name, fmt.Sprintf("container %s ended (%s, exit code %d)", c.Name, t.Reason, t.ExitCode), t.Message, remedy}
		}
	}
	if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		return &podError{p.Name, "it ended: " + string(p.Status.Phase) + " " + p.Status.Reason, p.Status.Message, failRemedy(p.Status.Reason)}
	}
	return nil
}

func failRemedy(reason string) string {
	switch {
	case reason == "DeadlineExceeded":
		return "raise sandbox.with.deadline"
	case strings.HasPrefix(reason, "OutOf"), reason == "NodeAffinity":
		return "the node took no more: lower sandbox.with.requests, or allow other nodes"
	}
	return ""
}

// unschedulable returns why no node takes the pod now, or nil.
func unschedulable(p *corev1.Pod) error {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &podError{p.Name, "Unschedulable", c.Message,
				"lower sandbox.memory, sandbox.cpus or sandbox.with.requests, widen pod_spec or only_node, add nodes, or raise schedule_grace where nodes come by themselves"}
		}
	}
	return nil
}

// running returns a function that reports whether a container of a pod runs.
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

// podEnd returns what ended a pod according to its status; sure is false if the status does not tell. The reason is ""
// if the end came from inside: programs ran out of memory, or the guest ended by itself.
func podEnd(p *corev1.Pod) (reason string, sure bool) {
	why := ""
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			why = strings.TrimSpace(" (" + c.Reason + ": " + printable(c.Message) + ")")
		}
	}
	switch {
	case p.DeletionTimestamp != nil:
		return strings.TrimSpace("pod " + p.Name + " was deleted " + why), true
	case p.Status.Phase == corev1.PodFailed && p.Status.Reason != "":
		return "pod " + p.Name + " failed: " + p.Status.Reason + ": " + printable(p.Status.Message), true
	case why != "":
		return "pod " + p.Name + " was disrupted " + why, true
	case p.Status.Phase == corev1.PodUnknown:
		return "pod " + p.Name + " is on a node that is lost", true
	}
	for _, c := range p.Status.ContainerStatuses {
		t := c.State.Terminated
		if t == nil || c.Name != sandboxName {
			continue
		}
		if t.ExitCode == 128+9 && t.Reason != "OOMKilled" {
			return "somebody killed container " + c.Name + " of pod " + p.Name + ": exit code " + strconv.Itoa(int(t.ExitCode)), true
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

// imageOf returns the digest of the sandbox's image on its node.
func imageOf(p *corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == sandboxName {
			return c.ImageID
		}
	}
	return ""
}

// finishedGrace is how long an ended pod stays for its owner to inspect.
const finishedGrace = 10 * time.Minute

// ended reports whether a pod ended more than finishedGrace ago.
func ended(p *corev1.Pod, now time.Time) bool {
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
