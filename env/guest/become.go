package guest

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// become gives the directories in own to uid, gives up root and every capability, including
// the inheritable and bounding sets, and restarts this executable as uid. Capabilities belong
// to a thread: after the exec only the thread that has given them up is left. It returns only
// with an error.
func become(uid int, own []string) error {
	for _, dir := range own {
		if err := os.Chown(dir, uid, uid); err != nil {
			return err
		}
	}
	runtime.LockOSThread()
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EINVAL && c > unix.CAP_SYS_RESOURCE { // beyond the last capability that the kernel knows
			break
		}
		if err != nil {
			return fmt.Errorf("giving up capability %d: %w", c, err)
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
		return fmt.Errorf("giving up capabilities: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return fmt.Errorf("starting over: %w", unix.Exec(self, append(os.Args, "-drop=0"), os.Environ()))
}
