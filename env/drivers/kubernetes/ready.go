package kubernetes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// follow watches a pod until done returns true, or until the pod can no longer become ready. If a watch breaks, expires
// or stays silent, follow gets the pod again and starts another watch.
func (d *driver) follow(ctx context.Context, api *client, pod *corev1.Pod, done func(*corev1.Pod) bool) (*corev1.Pod, error) {
	grace := time.Duration(d.config.ScheduleGrace)
	var waiting time.Time // since when the pod has been unschedulable, by the clock of this machine
	check := func(p *corev1.Pod) (bool, error) {
		if err := permanentFailure(p); err != nil {
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
			return nil, deletedError(name)
		} else if err != nil {
			return nil, fmt.Errorf("getting pod %s: %w", name, err)
		}
	}
}

// events reads one watch until it ends. It returns the last state of the pod and whether check returned true.
func (d *driver) events(ctx context.Context, w watch.Interface, pod *corev1.Pod, check func(*corev1.Pod) (bool, error)) (*corev1.Pod, bool, error) {
	defer w.Stop()
	timeout := time.NewTimer(watchTimeout + 5*time.Second)
	defer timeout.Stop()
	// Check repeatedly, because some states count as permanent only after some time.
	recheck := time.NewTicker(500 * time.Millisecond)
	defer recheck.Stop()
	for {
		select {
		case <-ctx.Done():
			return pod, false, ctx.Err()
		case <-timeout.C:
			return pod, false, nil
		case <-recheck.C:
		case e, open := <-w.ResultChan():
			if !open || e.Type == watch.Error { // expired or broken: the caller starts another watch
				return pod, false, nil
			}
			seen, isPod := e.Object.(*corev1.Pod)
			if !isPod || e.Type == watch.Bookmark {
				continue
			}
			if e.Type == watch.Deleted {
				return seen, false, deletedError(seen.Name)
			}
			pod = seen
		}
		if ok, err := check(pod); ok || err != nil {
			return pod, ok, err
		}
	}
}
