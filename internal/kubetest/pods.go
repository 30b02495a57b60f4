package kubetest

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StartFailure determines how a pod fails to start; the zero value lets it run.
type StartFailure struct {
	// Waiting is the waiting reason of the first container: ImagePullBackOff, ...
	Waiting string
	// Unschedulable means that no node accepts the pod.
	Unschedulable bool
	Message       string
}

// pod is one pod on the node.
type pod struct {
	corev1.Pod
	server     *Server
	containers map[string]*container
	starting   sync.Mutex // serializes starting and killing of containers
	once       sync.Once
	killed     chan struct{}
	ended      chan struct{} // closed when runToEnd has returned
}

// updateStatus edits the status and notifies the watches.
func (p *pod) updateStatus(edit func(*corev1.PodStatus)) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	if p.server.pods[p.Name] != p {
		return
	}
	edit(&p.Status)
	p.server.record("MODIFIED", p)
}

// runToEnd runs the pod from its scheduling to its end.
func (p *pod) runToEnd() {
	defer close(p.ended)
	if d := p.server.Delay; d > 0 {
		select {
		case <-p.killed:
			return
		case <-time.After(d):
		}
	}
	var failure StartFailure
	if p.server.StartFailure != nil {
		failure = p.server.StartFailure(p.Pod.DeepCopy())
	}
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}
	if failure.Unschedulable {
		scheduled = corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: failure.Message}
	}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	if failure.Waiting != "" {
		waiting.Waiting = &corev1.ContainerStateWaiting{Reason: failure.Waiting, Message: failure.Message}
	}
	p.updateStatus(func(s *corev1.PodStatus) {
		s.Conditions = append(s.Conditions, scheduled)
		if failure.Unschedulable {
			return
		}
		for i, c := range p.Spec.InitContainers {
			st := corev1.ContainerStatus{Name: c.Name}
			if i == 0 {
				st.State = waiting
			}
			s.InitContainerStatuses = append(s.InitContainerStatuses, st)
		}
		for _, c := range p.Spec.Containers {
			s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{Name: c.Name})
		}
	})
	if failure != (StartFailure{}) {
		<-p.killed
		return
	}
	for i := range p.Spec.InitContainers {
		c := p.start(&p.Spec.InitContainers[i])
		if c == nil || p.finish(c) != 0 {
			p.updateStatus(func(s *corev1.PodStatus) { s.Phase = corev1.PodFailed })
			return
		}
	}
	p.updateStatus(func(s *corev1.PodStatus) { s.Phase = corev1.PodRunning })
	var all sync.WaitGroup
	var failed atomic.Bool
	for i := range p.Spec.Containers {
		if c := p.start(&p.Spec.Containers[i]); c != nil {
			all.Go(func() {
				if p.finish(c) != 0 {
					failed.Store(true)
				}
			})
		}
	}
	all.Wait()
	p.updateStatus(func(s *corev1.PodStatus) {
		if s.Phase = corev1.PodSucceeded; failed.Load() {
			s.Phase = corev1.PodFailed
		}
	})
}

// start starts a container, unless the pod is being killed.
func (p *pod) start(spec *corev1.Container) *container {
	p.starting.Lock()
	defer p.starting.Unlock()
	select {
	case <-p.killed:
		return nil
	default:
	}
	c, err := p.newContainer(spec)
	if err != nil {
		p.setContainerState(spec.Name, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 128, Reason: "StartError", Message: err.Error(), FinishedAt: metav1.Now(),
		}})
		return nil
	}
	p.server.mu.Lock()
	if p.containers == nil {
		p.containers = map[string]*container{}
	}
	p.containers[spec.Name] = c
	p.server.mu.Unlock()
	p.setContainerState(spec.Name, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
	return c
}

// finish waits for the end of a container, records its state and returns its exit code.
func (p *pod) finish(c *container) int {
	<-c.ended
	reason := "Completed"
	if c.code != 0 {
		reason = "Error"
	}
	p.setContainerState(c.name, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: int32(c.code), Reason: reason, FinishedAt: metav1.Now(), Message: c.output.String(),
	}})
	return c.code
}

// setContainerState records the state of a container in the status of the pod.
func (p *pod) setContainerState(name string, st corev1.ContainerState) {
	p.updateStatus(func(s *corev1.PodStatus) {
		for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
			for i := range list {
				if list[i].Name == name {
					list[i].State, list[i].ImageID = st, "test@sha256:0"
					list[i].Ready = st.Running != nil
				}
			}
		}
	})
}

// kill ends a deleted pod, as its node does, and removes it.
func (s *Server) kill(p *pod) {
	s.mu.Lock()
	if s.pods[p.Name] == p && p.DeletionTimestamp == nil {
		now := metav1.Now()
		p.DeletionTimestamp = &now
		s.record("MODIFIED", p)
	}
	s.mu.Unlock()
	p.stop()
	<-p.ended
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[p.Name] == p {
		delete(s.pods, p.Name)
		s.record("DELETED", p)
		if err := os.RemoveAll(p.dir()); err != nil {
			s.t.Errorf("removing the volumes of %s: %v", p.Name, err)
		}
	}
}

// stop ends the containers.
func (p *pod) stop() {
	p.once.Do(func() { close(p.killed) })
	p.starting.Lock()
	defer p.starting.Unlock()
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	for _, c := range p.containers {
		c.kill()
	}
}

// Delete deletes a pod without its owner's knowledge.
func (s *Server) Delete(name string) {
	s.mu.Lock()
	p := s.pods[name]
	s.mu.Unlock()
	if p != nil {
		s.kill(p)
	}
}

// Evict ends a pod as a node under pressure does. The pod object remains.
func (s *Server) Evict(name, reason, message string) {
	s.mu.Lock()
	p := s.pods[name]
	s.mu.Unlock()
	p.updateStatus(func(st *corev1.PodStatus) { st.Phase, st.Reason, st.Message = corev1.PodFailed, reason, message })
	p.stop()
	<-p.ended
	p.updateStatus(func(st *corev1.PodStatus) { st.Phase = corev1.PodFailed })
}

func (p *pod) dir() string { return filepath.Join(p.server.dir, "pods", string(p.UID)) }

// volume returns the host directory of a volume that containers share.
func (p *pod) volume(name string) (string, error) {
	dir := filepath.Join(p.dir(), name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("creating volume %s: %w", name, err)
	}
	return dir, os.Chmod(dir, 0o777)
}
