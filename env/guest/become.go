package guest

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// become gives up root for uid and every capability, also those that it could
// inherit or be bound to, after handing over the directories a root start had to
// create, and starts over. Capabilities are a thread's: the thread that is left
// after an exec is the one that has given them up. It returns only with an error.
func become(uid int, own []string) error {
	for _, dir := range own {
		if err := os.Chown(dir, uid, uid); err != nil {
			return err
		}
	}
	runtime.LockOSThread()
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EINVAL && c > unix.CAP_SYS_RESOURCE { // the kernel knows no more
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
