package guest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// In a Kubernetes pod no byte stream reaches the first process of a sandbox. It dials a
// socket that both containers of the pod see, and a second process, the relay, passes bytes
// between that socket and the stream it was started with. The relay runs in a container
// where programs of the sandbox cannot see it, and the socket is removed before any of them
// runs.

const (
	// meetBound is how long guest and relay wait for each other.
	meetBound = 2 * time.Minute
	meetPace  = 20 * time.Millisecond
	// holdGrace is how long hold waits without a relay.
	holdGrace = 10 * time.Second
)

// dial waits for the socket of a relay and connects to it.
func dial(path string) (*hostConn, error) {
	for end := time.Now().Add(meetBound); ; time.Sleep(meetPace) {
		conn, err := net.Dial("unix", path)
		if err == nil {
			return &hostConn{Conn: conn, ended: make(chan struct{})}, nil
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("waiting for the host: %w", err)
		}
	}
}

// relay passes bytes between standard input and output and the guest, which is the first to
// connect, until the guest closes the connection.
func relay(path string) error {
	_ = os.Remove(path) // of an earlier relay that no guest connected to
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	defer l.Close()
	if err := errors.Join(os.Chmod(path, 0o666), l.SetDeadline(time.Now().Add(meetBound))); err != nil {
		return err
	}
	conn, err := l.AcceptUnix()
	if err != nil {
		return fmt.Errorf("waiting for the guest: %w", err)
	}
	if err := l.Close(); err != nil { // removes the socket
		return err
	}
	go func() { // ends with the process
		_, _ = io.Copy(conn, os.Stdin)
		_ = conn.CloseWrite()
	}()
	_, err = io.Copy(os.Stdout, conn)
	return err
}

// hold is the first process of the container in which relays run. It ends soon after the
// last of them, so that a pod whose host is gone ends by itself.
func hold(first time.Duration) error {
	last := time.Now().Add(max(first-holdGrace, 0))
	for time.Since(last) < holdGrace {
		others, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			return err
		}
		if now := time.Now(); len(others) > 1 && now.After(last) {
			last = now
		}
		time.Sleep(10 * meetPace)
	}
	return nil
}

// reach tries a TCP connection to the cluster's API server, whose address every container of
// a pod has in its environment. It returns nil if the server can be reached, or if its
// address is not known.
func reach() error {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" {
		return nil
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(host, port), 3*time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}

// inherited is the environment of programs that follows from environ, this process's own: it
// is the image's, without the variables that the cluster adds, and with dir first in PATH.
func inherited(environ []string, dir string) [][]byte {
	var out [][]byte
	search := ""
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case name == "PATH":
			search = ":" + value
		case name == "HOSTNAME" || name == "GOMAXPROCS" || strings.HasPrefix(name, "KUBERNETES_"):
		default:
			out = append(out, []byte(kv))
		}
	}
	return append(out, []byte("PATH="+dir+search))
}
