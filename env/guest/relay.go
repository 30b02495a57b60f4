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

// In a Kubernetes pod, the host has no byte stream to the first process of a sandbox. The
// guest therefore dials a socket in a volume that two containers of the pod share. A process
// in the other container, the relay, copies bytes between that socket and its own standard
// streams. Programs of the sandbox cannot see the relay, and the relay removes the socket
// before any of them runs.

const (
	// connectTimeout is how long guest and relay wait for each other.
	connectTimeout = 2 * time.Minute
	pollInterval   = 20 * time.Millisecond
	// relayGrace is how long waitForRelays runs without a relay.
	relayGrace = 10 * time.Second
)

// dial connects to the socket of a relay, and waits until the relay has created it.
func dial(path string) (*hostConn, error) {
	for end := time.Now().Add(connectTimeout); ; time.Sleep(pollInterval) {
		conn, err := net.Dial("unix", path)
		if err == nil {
			return &hostConn{Conn: conn, ended: make(chan struct{})}, nil
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("connecting to the relay: %w", err)
		}
	}
}

// relay copies bytes between the guest and standard input and output, until the guest closes
// the connection. The guest is the first process to connect to the socket.
func relay(path string) error {
	_ = os.Remove(path) // left by an earlier relay that no guest connected to
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	defer l.Close()
	if err := errors.Join(os.Chmod(path, 0o666), l.SetDeadline(time.Now().Add(connectTimeout))); err != nil {
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

// waitForRelays is the first process of the container in which relays run. It returns soon
// after the last of them has ended, so that a pod ends by itself when its host is gone. first
// is how long it waits for the first relay.
func waitForRelays(first time.Duration) error {
	last := time.Now().Add(max(first-relayGrace, 0))
	for time.Since(last) < relayGrace {
		others, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			return err
		}
		if now := time.Now(); len(others) > 1 && now.After(last) {
			last = now
		}
		time.Sleep(10 * pollInterval)
	}
	return nil
}

// checkAPIServer tries a TCP connection to the cluster's API server, whose address is in the
// environment of every container. It returns nil if the server can be reached, or if the
// environment does not contain its address.
func checkAPIServer() error {
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

// inheritedEnviron returns the base environment of programs: environ, which is the image's
// environment, without the variables that the cluster adds and with dir first in PATH.
func inheritedEnviron(environ []string, dir string) [][]byte {
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
