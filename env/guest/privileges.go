package guest

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// dropPrivileges gives the directories to uid, drops root and every capability, including the
// inheritable and bounding sets, and runs this executable again as uid. Each thread has its own
// capabilities; after the exec, only the thread that dropped them is left. dropPrivileges does
// not return unless it fails.
func dropPrivileges(uid int, dirs []string) error {
	for _, dir := range dirs {
		if err := os.Chown(dir, uid, uid); err != nil {
			return err
		}
	}
	runtime.LockOSThread()
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		// EINVAL means that c is beyond the last capability that the kernel knows. Every kernel knows
		// the lower ones, so for them it means that dropping does not work.
		if err == unix.EINVAL && c > unix.CAP_SYS_RESOURCE {
			break
		}
		if err != nil {
			return fmt.Errorf("dropping capability %d: %w", c, err)
		}
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("dropping groups: %w", err)
	}
	if err := syscall.Setresgid(uid, uid, uid); err != nil {
		return fmt.Errorf("dropping root's group: %w", err)
	}
	if err := syscall.Setresuid(uid, uid, uid); err != nil {
		return fmt.Errorf("dropping root: %w", err)
	}
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return fmt.Errorf("restarting the guest without privileges: %w", unix.Exec(self, append(os.Args, "-drop=0"), os.Environ()))
}
