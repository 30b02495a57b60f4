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

// role is what a process of a fleet does.
type role string

const (
	nodeRole        role = "node"
	workerRole      role = "worker"
	coordinatorRole role = "coordinator"
)

// member is one slot in a fleet. When its process ends, another one takes its place.
type member struct {
	role  role
	name  string
	start func() *exec.Cmd

	cmd            *exec.Cmd     // nil if no process runs
	stdout, stderr *bytes.Buffer // output of cmd
	endedBy        map[Kind]bool // kinds of the faults that were injected to end cmd
	leaving        bool          // cmd was told to end and will not be replaced
}

// alive reports whether the member has a process that is not about to end.
func (m *member) alive() bool { return m.cmd != nil && len(m.endedBy) == 0 && !m.leaving }

// title names the member in messages.
func (m *member) title() string {
	if m.role == coordinatorRole {
		return m.name
	}
	return string(m.role) + " " + m.name
}

// exitIsExplained reports whether the faults that struck the process, or the request to leave,
// explain its exit code. A negative code is a signal.
func (m *member) exitIsExplained(code int) bool {
	switch code {
	case 0: // a coordinator exits with 0 at the end of the batch
		return m.role == coordinatorRole || m.leaving || m.endedBy[Drain]
	case -int(syscall.SIGKILL): // the faults of these kinds kill the process
		return m.endedBy[Worker] || m.endedBy[Coordinator] || m.endedBy[Node] || m.endedBy[StoreTorn]
	case 130: // a worker that serves a run drains instead; one without a run says that it stops at once
		return m.role == coordinatorRole && m.endedBy[Drain] ||
			m.role == workerRole && (m.leaving || m.endedBy[Drain]) && strings.Contains(m.stderr.String(), "stopping: closing sandboxes")
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

// describeEnd describes how a process ended. If it failed without a fault, the description
// quotes the end of its standard error.
func describeEnd(code int, endedBy map[Kind]bool, stderr string) string {
	var kinds []string
	for k := range endedBy {
		kinds = append(kinds, string(k))
	}
	slices.Sort(kinds)
	text := strings.TrimSpace(fmt.Sprintf("%d %s", code, strings.Join(kinds, " ")))
	if code != 0 && len(endedBy) == 0 {
		text += ": " + tail(stderr, 600)
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

// ownsSocket reports whether a process has the socket with that inode open.
func ownsSocket(pid int, inode string) bool {
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	fds, _ := os.ReadDir(dir) // the process may have ended
	return slices.ContainsFunc(fds, func(fd os.DirEntry) bool {
		to, err := os.Readlink(dir + fd.Name())
		return err == nil && to == "socket:["+inode+"]"
	})
}

// socketInode returns the inode of the loopback socket with that local address; "" if it is
// unknown.
func socketInode(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return ""
	}
	table, _ := os.ReadFile("/proc/net/tcp") // if it cannot be read, the caller chooses any process
	local := fmt.Sprintf("0100007F:%04X", n)
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 9 && f[1] == local {
			return f[9]
		}
	}
	return ""
}
