package bubblewrap

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env/drivers"
)

// hostUser is the uid and gid that sandboxed programs have on the host if tracesmith runs as root. It is far above the
// ids that systems assign, so it owns no files.
const hostUser = 2_000_000_000

// privilegeMode says how bwrap gets the privileges to set up a sandbox.
type privilegeMode struct {
	root        bool // the guest starts as root of its namespace and changes to user
	needsUserns bool // bwrap starts in a new user namespace
	user        int  // uid and gid of programs inside the sandbox
}

// privilegeModes returns the modes to try, in order. As root, the driver first tries to create a user namespace that
// maps the programs' user to hostUser. If the kernel refuses that, programs run as hostUser without a user namespace.
func privilegeModes() []privilegeMode {
	if os.Getuid() != 0 {
		return []privilegeMode{{user: drivers.User}}
	}
	return []privilegeMode{{root: true, needsUserns: true, user: drivers.User}, {root: true, user: hostUser}}
}

// attributes returns the attributes of the process that starts bwrap. It is root in a new mount namespace and, if the
// mode has one, in a new user namespace.
func (w privilegeMode) attributes() *syscall.SysProcAttr {
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

// countsPerNamespace reports whether RLIMIT_NPROC counts only the processes of one user namespace, as it does since
// Linux 5.14. Earlier kernels count all processes of a user on the host.
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
