package guest

import (
	"fmt"
	"os"
	"syscall"
)

// launchArg makes the guest's executable a launcher. A launcher waits until the guest has set
// its resource limits (one of them is the tag of its scope, see scope), and then replaces itself
// with the program by exec. The guest uses launchers if the kernel forbids it to trace processes
// (kernel.yama.ptrace_scope is 2 or 3). They are not the default because each start takes one
// more exec.
const launchArg = "tracesmith-guest-launch"

// launchGate is the file descriptor from which the launcher reads a byte before it continues.
const launchGate = 3

// launch never returns. args are the program's path and arguments.
func launch(args []string) {
	gate := os.NewFile(launchGate, "gate")
	if _, err := gate.Read(make([]byte, 1)); err != nil || gate.Close() != nil || len(args) < 2 {
		os.Exit(126) // the guest has given up
	}
	err := syscall.Exec(args[0], args[1:], os.Environ())
	fmt.Fprintf(os.Stderr, "%s: %v\n", args[1], err)
	os.Exit(126)
}

// startLaunched is like startTraced, but uses a launcher instead of tracing.
func startLaunched(path string, args []string, attr *syscall.ProcAttr, limit func(pid int) error) (pid int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	defer w.Close() // if no byte was written, the launcher sees the end of the pipe and exits
	if len(attr.Files) > launchGate {
		attr.Files[launchGate] = r.Fd()
	} else {
		attr.Files = append(attr.Files[:launchGate:launchGate], r.Fd())
	}
	pid, _, err = syscall.StartProcess(self, append([]string{self, launchArg, path}, args...), attr)
	if err != nil {
		return 0, err
	}
	if err := limit(pid); err != nil {
		return pid, err
	}
	_, err = w.Write([]byte{1})
	return pid, err
}
