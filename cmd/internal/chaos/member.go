package chaos

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// role is the role of a process in a fleet.
type role string

const (
	aNode        role = "node"
	aWorker      role = "worker"
	aCoordinator role = "coordinator"
)

// member is one slot in a fleet. When its process ends, another one takes its place.
type member struct {
	role  role
	name  string
	start func() *exec.Cmd

	cmd       *exec.Cmd     // nil if no process runs
	out, errs *bytes.Buffer // what cmd wrote
	ended     map[Kind]bool // faults that are to end cmd
	leaving   bool          // cmd is to end, and nothing replaces it
}

// alive reports whether a process runs that is not about to end.
func (m *member) alive() bool { return m.cmd != nil && len(m.ended) == 0 && !m.leaving }

// place names the member in messages.
func (m *member) place() string {
	if m.role == aCoordinator {
		return m.name
	}
	return string(m.role) + " " + m.name
}

// exitIsExplained reports whether the faults that struck the process, or its dismissal, explain
// its exit code. A negative code is a signal.
func (m *member) exitIsExplained(code int) bool {
	switch code {
	case 0: // a coordinator exits with 0 at the end of the batch
		return m.role == aCoordinator || m.leaving || m.ended[Drain]
	case -int(syscall.SIGKILL):
		return m.ended[Worker] || m.ended[Coordinator] || m.ended[Node] || m.ended[StoreTorn]
	case 130: // a worker that is stopped before it finds the cluster has nothing to drain
		return m.role == aCoordinator && m.ended[Drain] ||
			m.role == aWorker && (m.leaving || m.ended[Drain]) && strings.Contains(m.errs.String(), "stopping: closing sandboxes")
	}
	return false
}

// exitCode returns the exit code of a process that has ended, or the negative number of
// the signal that killed it.
func exitCode(cmd *exec.Cmd) int {
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return -int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// describeEnd describes how a process ended. It quotes the end of errs, the standard
// error, only for a failure without a fault.
func describeEnd(code int, ended map[Kind]bool, errs string) string {
	var kinds []string
	for k := range ended {
		kinds = append(kinds, string(k))
	}
	slices.Sort(kinds)
	text := strings.TrimSpace(fmt.Sprintf("%d %s", code, strings.Join(kinds, " ")))
	if code != 0 && len(ended) == 0 {
		text += ": " + tail(errs, 600)
	}
	return text
}

// freePorts finds free ports on loopback. They are below the ephemeral ports, so no outgoing
// connection takes the port of a node while the node restarts.
func freePorts(n int) ([]int, error) {
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		port := 10_000 + rand.IntN(20_000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil && tries > 1000 {
			return nil, fmt.Errorf("finding free ports: %w", err)
		}
		if err != nil || slices.Contains(ports, port) {
			continue
		}
		_ = l.Close()
		ports = append(ports, port)
	}
	return ports, nil
}

// owns reports whether a process holds the socket with that inode.
func owns(pid int, inode string) bool {
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	fds, _ := os.ReadDir(dir) // the process may have ended
	return slices.ContainsFunc(fds, func(fd os.DirEntry) bool {
		to, err := os.Readlink(dir + fd.Name())
		return err == nil && to == "socket:["+inode+"]"
	})
}

// inodeOf returns the inode of the loopback socket with that local address, "" if it is
// unknown.
func inodeOf(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return ""
	}
	table, _ := os.ReadFile("/proc/net/tcp") // if it is unreadable, the caller takes any process
	local := fmt.Sprintf("0100007F:%04X", n)
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 9 && f[1] == local {
			return f[9]
		}
	}
	return ""
}
