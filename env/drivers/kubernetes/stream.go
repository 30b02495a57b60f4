package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/env/guest"
)

// exec runs a command in a container and waits until it exits. It uses WebSocket, or SPDY if the server or a proxy
// refuses WebSocket. Both send pings, so exec also returns if the connection is dead.
func (a *client) exec(ctx context.Context, pod, container string, args []string, in io.Reader, out, errOut io.Writer) error {
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
	var refusal error // of WebSocket; the later error of SPDY does not say why the server refuses
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

// deliver copies the guest's binary to the pod through the init container. If the stream breaks, the incomplete binary
// never gets the name that the pod starts.
func (a *client) deliver(ctx context.Context, pod, binary string) error {
	f, err := os.Open(binary)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	part := filepath.Join(guestDir, "part")
	script := fmt.Sprintf(`cat > %[1]s && test "$(wc -c < %[1]s)" -eq %[2]d && chmod 755 %[1]s && mv %[1]s %[3]s`, part, fi.Size(), guestPath)
	var stderr drivers.Tail
	err = a.retry(ctx, func(context.Context) error {
		// Use ctx, because the context that retry passes has the timeout of a control call, which is too short here.
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		// Hide the file's other methods, so that client-go uses Read.
		return a.exec(ctx, pod, initName, []string{"sh", "-c", script}, struct{ io.Reader }{f}, nil, &stderr)
	})
	if exit, ok := errors.AsType[exec.CodeExitError](err); ok && exit.Code == 128+9 && stderr.String() == "" {
		// The init container exits as soon as the guest is complete, which may kill the script first. If the container
		// ended for another reason, the pod's status says so.
		return nil
	}
	if text := stderr.String(); err != nil && text != "" {
		err = fmt.Errorf("%w: %s", err, printable(text))
	}
	return err
}

// podStream is the byte stream to the relay in a pod: one end of a pipe. client-go reads and writes the other end.
type podStream struct {
	net.Conn
	stderr drivers.Tail
	cancel context.CancelFunc
	done   chan struct{} // closed once exec has returned
	err    error         // result of exec; valid once done is closed
}

// openStream starts the relay in the pod. The caller may try again if it cannot connect to the guest through the
// stream, but must not replace a stream through which it has connected.
func (a *client) openStream(pod string) *podStream {
	host, inner := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	s := &podStream{Conn: host, cancel: cancel, done: make(chan struct{})}
	go func() {
		s.err = a.exec(ctx, pod, relayName, []string{guestPath, guest.ServeArg, "-relay", socketPath}, inner, inner, &s.stderr)
		close(s.done)
		_ = inner.Close() // ends reads from host, after which s.err may be read
	}()
	return s
}

// wait waits until the relay exits. Close must be called first, because it ends the relay's input. After
// drivers.CloseTimeout, wait cuts the connection.
func (s *podStream) wait() {
	select {
	case <-s.done:
	case <-time.After(drivers.CloseTimeout):
	}
	s.cancel()
	<-s.done
}

// lost returns a message that says how the connection broke, or "" if the connection is still open, the relay has
// exited or the driver has closed the connection.
func (s *podStream) lost(pod string) string {
	select {
	case <-s.done:
	default:
		return ""
	}
	_, exited := errors.AsType[exec.CodeExitError](s.err)
	if s.err == nil || exited || errors.Is(s.err, context.Canceled) {
		return ""
	}
	return "the stream to pod " + pod + " broke: " + printable(s.err.Error())
}

// outsideCause returns a message that says what ended a sandbox whose stream broke, or "" if the sandbox's own programs
// may be the cause.
func (a *client) outsideCause(name string, s *podStream) string {
	ctx, cancel := context.WithTimeout(context.Background(), drivers.CauseTimeout)
	defer cancel()
	silent := true // the stream is still open
	select {
	case <-s.done:
		silent = false
	case <-ctx.Done():
	case <-time.After(drivers.CauseTimeout / 2):
	}
	for {
		pod, err := a.getOnce(ctx, name)
		switch {
		case apierrors.IsNotFound(err):
			return "pod " + name + " was deleted"
		case err == nil:
			if reason, sure := endReason(pod); sure && reason == "" && !outOfMemory(pod) {
				return s.lost(name) // the guest ends when its stream does
			} else if sure {
				return reason
			}
		default:
			return "pod " + name + " cannot be inspected: " + printable(err.Error())
		}
		select {
		case <-ctx.Done():
			if silent {
				return "the stream to pod " + name + " became silent while the pod was running"
			}
			return s.lost(name)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
