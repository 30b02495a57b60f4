package drivers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// kubeWatchBound is when a silent watch is renewed: a half-open one cannot hold a
// start for longer.
const kubeWatchBound = 20 * time.Second

// podError is a pod that will not become a sandbox, with the remedy.
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

// printable makes text of a cluster fit for one line of a message.
func printable(s string) string {
	line := strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	return line[:min(len(line), 500)]
}

// follow watches a pod until done says so or the pod cannot get there. It looks
// again where a watch is cut, has expired or says nothing.
func (d *kubernetes) follow(ctx context.Context, api *kubeAPI, pod *corev1.Pod, done func(*corev1.Pod) bool) (*corev1.Pod, error) {
	grace := time.Duration(d.config.ScheduleGrace)
	var waiting time.Time // unschedulable since, by our clock
	check := func(p *corev1.Pod) (bool, error) {
		if err := hopeless(p); err != nil {
			return false, err
		}
		if err := unschedulable(p); err == nil {
			waiting = time.Time{}
		} else if waiting.IsZero() {
			waiting = time.Now()
		} else if time.Since(waiting) >= grace {
			return false, err
		}
		return done(p), nil
	}
	for {
		ok, err := check(pod)
		if ok || err != nil {
			return pod, err
		}
		w, err := api.watch(ctx, pod.Name, pod.ResourceVersion)
		if err == nil {
			pod, ok, err = d.events(ctx, w, pod, check)
			if ok || err != nil {
				return pod, err
			}
		} else if !api.transient(err) && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return pod, fmt.Errorf("watching pod %s: %w", pod.Name, err)
		}
		if ctx.Err() != nil {
			return pod, ctx.Err()
		}
		name := pod.Name
		if pod, err = api.get(ctx, name); apierrors.IsNotFound(err) {
			return nil, gone(name)
		} else if err != nil {
			return nil, fmt.Errorf("looking at pod %s: %w", name, err)
		}
	}
}

// events follows one watch to its end.
func (d *kubernetes) events(ctx context.Context, w watch.Interface, pod *corev1.Pod, check func(*corev1.Pod) (bool, error)) (*corev1.Pod, bool, error) {
	defer w.Stop()
	bound := time.NewTimer(kubeWatchBound + 5*time.Second)
	defer bound.Stop()
	// A state can also become hopeless by lasting.
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return pod, false, ctx.Err()
		case <-bound.C:
			return pod, false, nil
		case <-again.C:
		case e, open := <-w.ResultChan():
			if !open || e.Type == watch.Error { // expired or cut: the caller looks again
				return pod, false, nil
			}
			seen, isPod := e.Object.(*corev1.Pod)
			if !isPod || e.Type == watch.Bookmark {
				continue
			}
			if e.Type == watch.Deleted {
				return seen, false, gone(seen.Name)
			}
			pod = seen
		}
		if ok, err := check(pod); ok || err != nil {
			return pod, ok, err
		}
	}
}

func gone(name string) error {
	return &podError{name, "it was deleted while it started", "", "see who cleans up this namespace"}
}

// waitReasons are the states of a container that do not pass, with what helps.
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

// hopeless tells why a pod cannot become ready any more, nil while it may.
func hopeless(p *corev1.Pod) error {
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
		if t := c.State.Terminated; t != nil && (c.Name != kubeInit || t.ExitCode != 0) {
			remedy := ""
			switch {
			case t.Reason == "OOMKilled":
				remedy = "raise sandbox.memory"
			case t.Reason == "StartError" || t.Reason == "ContainerCannotRun" || c.Name == kubeInit:
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

// unschedulable tells why no node takes the pod now.
func unschedulable(p *corev1.Pod) error {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &podError{p.Name, "Unschedulable", c.Message,
				"lower sandbox.memory, sandbox.cpus or sandbox.with.requests, widen pod_spec or only_node, add nodes, or raise schedule_grace where nodes come by themselves"}
		}
	}
	return nil
}

// running tells that a container of the pod runs.
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

// remedy says what to do about the usual refusals of an API server.
func (d *kubernetes) remedy(err error, api *kubeAPI) error {
	text := err.Error()
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(text, "exceeded quota"):
		return fmt.Errorf("%w: run fewer at once, lower sandbox.memory, sandbox.cpus or sandbox.with.requests, or have the namespace's quota raised", err)
	case apierrors.IsForbidden(err) && (strings.Contains(text, "admission") || strings.Contains(text, "violates PodSecurity")):
		return fmt.Errorf("%w: an admission rule of the cluster refused the pod: fit sandbox.with.pod_spec to it", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: let this account create, get, list, watch and delete pods and create pods/exec in namespace %s (see `kubectl auth can-i --list`)", err, api.namespace)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: the credentials are missing or have expired: renew them (see `kubectl auth whoami`)", err)
	case apierrors.IsNotFound(err) && strings.Contains(text, "namespaces"):
		return fmt.Errorf("%w: make the namespace, or set sandbox.with.namespace", err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fmt.Errorf("%w: check sandbox.with.pod_spec", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: not ready within start_timeout (%v): see `kubectl describe pod` for what it waited for, or raise sandbox.with.start_timeout", err, time.Duration(d.config.StartTimeout))
	case !api.reached.Load():
		return fmt.Errorf("%w: the API server at %s does not answer: check the kubeconfig, its context and the network, or choose --sandbox bubblewrap", err, api.config.Host)
	}
	return err
}
