package kubernetes

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/kubetest"
)

// A sandbox starts, works and ends despite transient faults of the API server. creates is the number of requests to
// create its pod.
func TestKubernetesRetriesAfterTransientFaults(t *testing.T) {
	busy := kubetest.Fault{Times: 2, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, RetryAfter: 1}
	broken := kubetest.Fault{Times: 2, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError}
	of := func(f kubetest.Fault, verb string) kubetest.Fault { f.Verb = verb; return f }
	for name, c := range map[string]struct {
		fault   kubetest.Fault
		creates int
	}{
		"throttled create":    {of(busy, "create"), 3},
		"failing create":      {of(broken, "create"), 3},
		"quota conflict":      {kubetest.Fault{Verb: "create", Times: 1, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict}, 2},
		"response lost":       {kubetest.Fault{Verb: "create", Times: 1, Lost: true}, 2},
		"watch refused":       {of(broken, "watch"), 1},
		"watch expired":       {kubetest.Fault{Verb: "watch", Times: 1, Code: http.StatusGone, Reason: metav1.StatusReasonExpired}, 1},
		"expired in a watch":  {kubetest.Fault{Verb: "event", Times: 2, Code: http.StatusGone, Reason: metav1.StatusReasonExpired}, 1},
		"watches break":       {kubetest.Fault{Verb: "event", Times: 3}, 1},
		"failing get":         {of(broken, "get"), 1},
		"failing delete":      {of(broken, "delete"), 1},
		"exec fails at first": {kubetest.Fault{Verb: "exec", Times: 2, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := kubetest.Start(t)
			d := kube(t, s, map[string]any{"network_policy": false})
			// The driver retries only if it has reached the server before, so make one call first.
			if n, err := env.RemoveLeftovers(t.Context(), d); n != 0 || err != nil {
				t.Fatal(n, err)
			}
			if c.fault.Verb == "get" {
				s.Fail(kubetest.Fault{Verb: "event", Times: 1})
			}
			s.Fail(c.fault)
			sb, err := d.Start(t.Context(), env.SandboxSpec{})
			if err != nil {
				t.Fatal(err)
			}
			if r, err := sb.Run(t.Context(), env.Command{Args: []string{"echo", "hi"}}); err != nil || string(r.Output) != "hi\n" {
				t.Errorf("%q, %v", r.Output, err)
			}
			if err := sb.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if got := s.Calls("create"); got != c.creates {
				t.Errorf("%d creates, want %d", got, c.creates)
			}
			if left := s.Pods(); len(left) != 0 {
				t.Errorf("%d pods are left", len(left))
			}
		})
	}
}

// A lasting problem fails the start at once, with its remedy, and leaves no pod.
func TestKubernetesFailsAtOnceOnLastingProblems(t *testing.T) {
	forbidden := func(message string) kubetest.Fault {
		return kubetest.Fault{Verb: "create", Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message}
	}
	for name, c := range map[string]struct {
		failure kubetest.StartFailure
		fault   kubetest.Fault
		with    map[string]any
		delay   time.Duration
		want    []string
	}{
		"image":         {failure: kubetest.StartFailure{Waiting: "ImagePullBackOff", Message: "pull access denied"}, want: []string{"ImagePullBackOff", "pull access denied", "image_pull_secrets"}},
		"first pull":    {failure: kubetest.StartFailure{Waiting: "ErrImagePull"}, want: []string{"ErrImagePull"}},
		"config":        {failure: kubetest.StartFailure{Waiting: "CreateContainerConfigError", Message: `secret "x" not found`}, want: []string{`secret "x" not found`, "pod_spec"}},
		"crash loop":    {failure: kubetest.StartFailure{Waiting: "CrashLoopBackOff"}, want: []string{"kubectl logs"}},
		"no node":       {failure: kubetest.StartFailure{Unschedulable: true, Message: "0/3 nodes are available"}, with: map[string]any{"schedule_grace": "1s"}, want: []string{"0/3 nodes are available", "schedule_grace"}},
		"forbidden":     {fault: forbidden(`pods is forbidden: User "x" cannot create resource "pods"`), want: []string{"cannot create", "pods/exec", "auth can-i"}},
		"quota":         {fault: forbidden("pods is forbidden: exceeded quota: team"), want: []string{"exceeded quota", "sandbox.memory"}},
		"admission":     {fault: forbidden(`pods is forbidden: violates PodSecurity "restricted"`), want: []string{"PodSecurity", "pod_spec"}},
		"token expired": {fault: kubetest.Fault{Verb: "create", Code: http.StatusUnauthorized, Reason: metav1.StatusReasonUnauthorized, Message: "Unauthorized"}, want: []string{"expired", "renew"}},
		"invalid":       {fault: kubetest.Fault{Verb: "create", Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "spec.x: bad"}, want: []string{"spec.x: bad", "pod_spec"}},
		"no namespace":  {with: map[string]any{"namespace": "elsewhere"}, want: []string{`namespaces "elsewhere" not found`, "sandbox.with.namespace"}},
		"exec forbidden": {fault: kubetest.Fault{Verb: "exec", Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "pods/exec is forbidden"},
			want: []string{"pods/exec is forbidden", "auth can-i"}},
		"too slow": {delay: time.Minute, with: map[string]any{"start_timeout": "8s"}, want: []string{"start_timeout", "no space for a sandbox"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := kubetest.Start(t)
			s.StartFailure, s.Delay, s.WarningEvent = func(*corev1.Pod) kubetest.StartFailure { return c.failure }, c.delay, "no space for a sandbox"
			if c.fault.Verb != "" {
				s.Fail(c.fault)
			}
			sb, err := kube(t, s, c.with).Start(t.Context(), env.SandboxSpec{})
			if err == nil {
				envtest.CloseAtEnd(t, sb)
				t.Fatal("the sandbox started")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
			if n := s.Calls("create"); n > 1 {
				t.Errorf("%d creates", n)
			}
			if left := s.Pods(); len(left) != 0 {
				t.Errorf("%d pods are left", len(left))
			}
		})
	}
}

// ends are the ways in which the stream of a pod can end during a command, each with a part of the expected reason.
var ends = map[string]struct {
	end  func(*kubetest.Server, string)
	want string
}{
	"deleted":       {func(s *kubetest.Server, pod string) { s.Delete(pod) }, "was deleted"},
	"evicted":       {func(s *kubetest.Server, pod string) { s.Evict(pod, "Evicted", "The node was low on memory") }, "Evicted: The node was low on memory"},
	"node lost":     {func(s *kubetest.Server, pod string) { s.Evict(pod, "NodeLost", "") }, "NodeLost"},
	"stream broken": {func(s *kubetest.Server, _ string) { s.CloseConnections() }, "stream"},
	"stream silent": {func(s *kubetest.Server, _ string) { s.Freeze() }, "pod"},
}

// If the stream ends during a command, the driver does not run the command again. The sandbox has died, and the command
// does not count as the cause, because the driver knows another one.
func TestKubernetesNeverRunsACommandAgain(t *testing.T) {
	for name, c := range ends {
		t.Run(name, func(t *testing.T) {
			s := kubetest.Start(t)
			sb, err := kube(t, s, nil).Start(t.Context(), env.SandboxSpec{})
			if err != nil {
				t.Fatal(err)
			}
			before, failed, timeout := s.Calls("exec"), make(chan error, 1), time.Minute
			if name == "stream silent" { // only the time limit of the call detects this
				timeout = 5 * time.Second
			}
			go func() {
				_, err := sb.Run(t.Context(), env.Command{Args: []string{"sleep", envtest.Nap(9)}, Timeout: timeout})
				failed <- err
			}()
			for end := time.Now().Add(30 * time.Second); len(envtest.Sleepers(t, envtest.Nap(9))) != 1; {
				if time.Now().After(end) {
					t.Fatal("the command did not start")
				}
			}
			c.end(s, s.Pods()[0].Name)
			err = <-failed
			died, _ := errors.AsType[*env.DiedError](err)
			if died == nil || died.CausedByCommand || !strings.Contains(died.Reason, c.want) {
				t.Errorf("%v (%+v), want a reason with %q", err, died, c.want)
			}
			if _, err := sb.Run(t.Context(), env.Command{Args: []string{"true"}}); !errors.Is(err, env.ErrSandboxDied) {
				t.Errorf("afterwards: %v", err)
			}
			if n := s.Calls("exec"); n != before {
				t.Errorf("%d more exec calls after the end of the stream", n-before)
			}
			if err := sb.Close(t.Context()); err != nil && name != "stream silent" {
				t.Error(err)
			}
		})
	}
}

// The guest's program is copied to a pod once, when the sandbox starts. Later calls use the stream to the guest, which
// passes through the relay, and need no exec.
func TestKubernetesDeliversTheGuestOnce(t *testing.T) {
	s := kubetest.Start(t)
	sb, err := kube(t, s, nil).Start(t.Context(), env.SandboxSpec{})
	if err != nil {
		t.Fatal(err)
	}
	envtest.CloseAtEnd(t, sb)
	if n := s.Calls("exec"); n != 3 { // copy the guest, check the network, start the relay
		t.Errorf("%d exec calls, want 3", n)
	}
	data := strings.Repeat("x", 5<<20)
	if err := sb.WriteFile(t.Context(), "big", []byte(data), 0); err != nil {
		t.Fatal(err)
	}
	if n := s.Calls("exec"); n != 3 {
		t.Errorf("%d exec calls after copying a file, want 3", n)
	}
}

func TestKubernetesExecProtocols(t *testing.T) {
	for name, c := range map[string]struct {
		offered  []string
		protocol string
	}{
		"WebSocket": {[]string{"v5.channel.k8s.io", "v4.channel.k8s.io"}, "v5.channel.k8s.io"},
		// client-go does not use v4 over WebSocket, because it cannot close the input.
		"old WebSocket": {[]string{"v4.channel.k8s.io"}, "spdy v4.channel.k8s.io"},
		"SPDY":          {nil, "spdy v4.channel.k8s.io"},
	} {
		t.Run(name, func(t *testing.T) {
			s := kubetest.Start(t)
			s.WebSocket = c.offered
			d := kube(t, s, nil).(*driver)
			sb, err := d.Start(t.Context(), env.SandboxSpec{})
			if err != nil {
				t.Fatal(err)
			}
			envtest.CloseAtEnd(t, sb)
			if n := s.Calls(c.protocol); n != 3 {
				t.Errorf("%d calls used %s, want 3", n, c.protocol)
			}
			big := []byte(strings.Repeat("0123456789abcdef", 1<<18))
			r, err := sb.Run(t.Context(), env.Command{Args: []string{"cat"}, Stdin: big, MaxOutput: 1000})
			if err != nil || r.Total != int64(len(big)) || len(r.Output) != 1000 {
				t.Errorf("%d of %d bytes, %d kept, %v", r.Total, len(big), len(r.Output), err)
			}
			// Exit codes arrive on the error channel.
			var out drivers.Tail
			err = d.api.exec(t.Context(), s.Pods()[0].Name, relayName, []string{"sh", "-c", "cat; exit 7"}, strings.NewReader("in"), &out, &out)
			if exit, ok := errors.AsType[interface {
				error
				ExitStatus() int
			}](err); !ok || exit.ExitStatus() != 7 || out.String() != "in" {
				t.Errorf("%v, %q", err, out.String())
			}
		})
	}
}

func TestKubernetesNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		with     map[string]any
		noPlugin bool
		fault    kubetest.Fault
		isolated bool
	}{
		"policy":    {isolated: true},
		"no plugin": {noPlugin: true},
		"disabled":  {with: map[string]any{"network_policy": false}},
		"forbidden": {fault: kubetest.Fault{Verb: "policy", Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}},
	} {
		s := kubetest.Start(t)
		s.NoPlugin = c.noPlugin
		if c.fault.Verb != "" {
			s.Fail(c.fault)
		}
		sb, err := kube(t, s, c.with).Start(t.Context(), env.SandboxSpec{})
		if err != nil {
			t.Fatal(err)
		}
		envtest.CloseAtEnd(t, sb)
		k := sb.Key()
		if isolated := k.Limits["network"] != ""; isolated != c.isolated || isolated == strings.Contains(strings.Join(k.Unenforced, " "), "network") {
			t.Errorf("%s: %+v", name, k)
		}
	}
}

// The leftovers are the pods of dead processes of this machine. Whether processes of other machines live is unknown, so
// only those of their pods that ended long ago are leftovers.
func TestKubernetesLeftovers(t *testing.T) {
	s := kubetest.Start(t)
	d := kube(t, s, nil)
	sb, err := d.Start(t.Context(), env.SandboxSpec{Label: "alive"})
	if err != nil {
		t.Fatal(err)
	}
	envtest.CloseAtEnd(t, sb)
	owner := func(field int, value string) string {
		fields := strings.Split(drivers.Self().String(), ".")
		fields[field] = value
		return strings.Join(fields, ".")
	}
	dead, other := owner(4, "1"), owner(0, "another") // another start time, another machine
	put := func(name, o string, phase corev1.PodPhase, age time.Duration) {
		at := metav1.NewTime(time.Now().Add(-age))
		s.AddPod(corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, CreationTimestamp: at, Labels: map[string]string{labelManagedBy: managedBy}, Annotations: map[string]string{annotationOwner: o},
			},
			Status: corev1.PodStatus{Phase: phase},
		})
	}
	put("dead-here", dead, corev1.PodRunning, time.Minute)
	put("running-elsewhere", other, corev1.PodRunning, 5*time.Hour)
	put("ended-elsewhere", other, corev1.PodSucceeded, time.Hour)
	put("just-ended-elsewhere", other, corev1.PodFailed, time.Minute)
	put("failed-elsewhere", other, corev1.PodFailed, time.Hour)
	if n, err := env.RemoveLeftovers(t.Context(), d); n != 3 || err != nil {
		t.Errorf("removed %d, %v", n, err)
	}
	var left []string
	for _, p := range s.Pods() {
		left = append(left, p.Name)
	}
	if text := strings.Join(left, " "); len(left) != 3 || !strings.Contains(text, "running-elsewhere") || !strings.Contains(text, "just-ended") {
		t.Errorf("pods left: %s", text)
	}
	if r, err := sb.Run(t.Context(), env.Command{Args: []string{"echo", "still"}}); err != nil || string(r.Output) != "still\n" {
		t.Errorf("%q, %v", r.Output, err)
	}
}
