package bubblewrap

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env/drivers"
)

// hostUser is the host's uid and gid of sandboxed code when tracesmith runs as root: far above the ids that systems
// assign, and owner of nothing.
const hostUser = 2_000_000_000

// startWay is how bwrap gets its privileges.
type startWay struct {
	root        bool // the guest starts as root of the namespace and drops to user
	needsUserns bool
	user        int // uid and gid of programs as seen inside
}

// startWays lists the ways to try. Root makes a user namespace in which programs are hostUser; if the kernel refuses,
// they become hostUser without one.
func startWays() []startWay {
	if os.Getuid() != 0 {
		return []startWay{{user: drivers.User}}
	}
	return []startWay{{root: true, needsUserns: true, user: drivers.User}, {root: true, user: hostUser}}
}

// attributes describes the process that starts bwrap: it is root in a mount namespace, and in a user namespace if
// there is one.
func (w startWay) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	switch {
	case w.needsUserns:
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: drivers.User, HostID: hostUser, Size: 1}}
		a.UidMappings, a.GidMappings, a.GidMappingsEnableSetgroups = ids, ids, true
		a.Cloneflags |= syscall.CLONE_NEWUSER
	case !w.root:
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		a.Cloneflags |= syscall.CLONE_NEWUSER
	}
	return a
}

// countsPerNamespace reports whether RLIMIT_NPROC counts the processes of one user namespace, as it does since Linux
// 5.14, and not all processes of a user on the host.
func countsPerNamespace() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 5 || major == 5 && minor >= 14
}
