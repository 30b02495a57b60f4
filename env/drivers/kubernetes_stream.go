package drivers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/tracesmith/tracesmith/env/guest"
)

// exec runs one of our own commands in a container and waits for its end: over
// WebSocket, or SPDY where the server or a proxy on the way refuses that. Both
// have pings of their own, so that a dead connection ends.
func (a *kubeAPI) exec(ctx context.Context, pod, container string, args []string, in io.Reader, out, errOut io.Writer) error {
	url := a.core.Post().Namespace(a.namespace).Resource("pods").Name(pod).SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: container, Command: args, Stdin: in != nil, Stdout: out != nil, Stderr: errOut != nil,
	}, a.params).URL()
	socket, err := remotecommand.NewWebSocketExecutor(a.config, "GET", url.String())
	if err != nil {
		return err
	}
	spdy, err := remotecommand.NewSPDYExecutor(a.config, "POST", url)
	if err != nil {
		return err
	}
	var refusal error // which SPDY's errors do not hold
	both, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		if upgrade, ok := errors.AsType[*httpstream.UpgradeFailureError](err); ok {
			refusal = upgrade.Cause
			return true
		}
		return httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return err
	}
	err = both.StreamWithContext(klog.NewContext(ctx, logr.Discard()), remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: errOut})
	if status := apierrors.APIStatus(nil); err != nil && errors.As(refusal, &status) && strings.Contains(err.Error(), "unable to upgrade") {
		return refusal
	}
	return err
}

// deliver puts the guest's binary into the pod through the init container, whole
// or not at all: a stream that breaks leaves nothing that would be started.
func (a *kubeAPI) deliver(ctx context.Context, pod, binary string) error {
	f, err := os.Open(binary)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	part := filepath.Join(kubeGuestDir, "part")
	script := fmt.Sprintf(`cat > %[1]s && test "$(wc -c < %[1]s)" -eq %[2]d && chmod 755 %[1]s && mv %[1]s %[3]s`, part, fi.Size(), kubeGuest)
	var said tail
	err = a.retry(ctx, func(context.Context) error {
		// The stream may take longer than a control call: ctx bounds the start.
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		// Hiding the file's other methods keeps client-go from copying by them.
		return a.exec(ctx, pod, kubeInit, []string{"sh", "-c", script}, struct{ io.Reader }{f}, nil, &said)
	})
	if exit, ok := errors.AsType[exec.CodeExitError](err); ok && exit.Code == 128+9 && said.String() == "" {
		// The init container ends as soon as the guest is whole, and takes what is
		// left of the script with it. Had it ended otherwise, the pod would say so.
		return nil
	}
	if text := said.String(); err != nil && text != "" {
		err = fmt.Errorf("%w: %s", err, printable(text))
	}
	return err
}

// podStream is the byte stream to a relay. The end that client-go serves is the
// other half of a pipe.
type podStream struct {
	net.Conn
	stderr tail
	cancel context.CancelFunc
	done   chan struct{} // closed once the exec has ended; ended tells how
	ended  error
}

// openStream execs the relay. Nothing has reached the guest before its first
// call, so a stream that could not be opened may be opened again; one that was
// is never replaced.
func (a *kubeAPI) openStream(pod string) *podStream {
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	s := &podStream{Conn: ours, cancel: cancel, done: make(chan struct{})}
	go func() {
		s.ended = a.exec(ctx, pod, kubeRelay, []string{kubeGuest, guest.ServeArg, "-relay", kubeSocket}, theirs, theirs, &s.stderr)
		close(s.done)
		_ = theirs.Close() // tells the reader of ours, who may then ask how it ended
	}()
	return s
}

// wait waits for the relay's end after Close, which ends its input, and cuts the
// connection after a while.
func (s *podStream) wait() {
	select {
	case <-s.done:
	case <-time.After(closeBound):
	}
	s.cancel()
	<-s.done
}

// lost says how the connection ended, "" if it was the relay that did.
func (s *podStream) lost(pod string) string {
	select {
	case <-s.done:
	default:
		return ""
	}
	_, exited := errors.AsType[exec.CodeExitError](s.ended)
	if s.ended == nil || exited || errors.Is(s.ended, context.Canceled) {
		return ""
	}
	return "the stream to pod " + pod + " broke: " + printable(s.ended.Error())
}

// outside finds out what ended a sandbox whose stream is gone: "" when it may
// have been its own programs.
func (a *kubeAPI) outside(name string, s *podStream) string {
	ctx, cancel := context.WithTimeout(context.Background(), outsideBound)
	defer cancel()
	silent := true // until the stream has ended in some way
	select {
	case <-s.done:
		silent = false
	case <-ctx.Done():
	case <-time.After(outsideBound / 2):
	}
	for {
		pod, err := a.get1(ctx, name)
		switch {
		case apierrors.IsNotFound(err):
			return "pod " + name + " was deleted"
		case err == nil:
			if reason, sure := podEnd(pod); sure && reason == "" && !memory(pod) {
				return s.lost(name) // the guest ends when its stream does
			} else if sure {
				return reason
			}
		default:
			return "pod " + name + " is out of reach: " + printable(err.Error())
		}
		select {
		case <-ctx.Done():
			if silent {
				return "the stream to pod " + name + " fell silent while the pod ran"
			}
			return s.lost(name)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// podEnd is what ended a pod as its status has it; sure is false while it says
// nothing. "" is an end from inside: programs that ran out of memory, or a guest
// that ended by itself.
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
		if t == nil || c.Name != kubeSandbox {
			continue
		}
		if t.ExitCode == 128+9 && t.Reason != "OOMKilled" {
			return "somebody killed container " + c.Name + " of pod " + p.Name + ": exit code " + strconv.Itoa(int(t.ExitCode)), true
		}
		return "", true
	}
	return "", false
}

// memory tells that the sandbox used up its memory, which is its programs' doing.
func memory(p *corev1.Pod) bool {
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && c.Name == kubeSandbox && t.Reason == "OOMKilled" {
			return true
		}
	}
	return false
}
