package guest

import (
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// harden prevents programs of the same user from tracing, reading or signaling the guest,
// makes orphans its children, and filters system calls (see rules). If pinned is true, programs
// cannot move to other processors than the ones they start on.
func harden(key tagKey, pinned bool) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("protecting the guest's memory: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopting orphans: %w", err)
	}
	// Descriptors that leaked into the host's children must not reach programs.
	if unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11
		if err := closeEachOnExec(); err != nil {
			return fmt.Errorf("keeping inherited descriptors from programs: %w", err)
		}
	}
	if os.Getpid() == 1 {
		if err := filterSyscalls(key, pinned); err != nil {
			return fmt.Errorf("filtering system calls: %w", err)
		}
	}
	unix.Umask(0o022)
	// The runtime receives signals and drops them, because this channel is never read.
	signal.Notify(make(chan os.Signal, 1))
	// The runtime leaves two signals to the C library, so ignore them here. The kernel
	// discards them for the first process of a namespace, except while its first thread
	// blocks them, which the runtime does briefly.
	for _, sig := range []uintptr{32, 34} {
		if err := ignoreSignal(sig); err != nil {
			return fmt.Errorf("ignoring signal %d: %w", sig, err)
		}
	}
	warmThreads()
	return nil
}

// ignoreSignal ignores a signal that os/signal does not know, with sigaction(2).
func ignoreSignal(sig uintptr) error {
	action := [4]uintptr{1} // struct kernel_sigaction: SIG_IGN, no flags, no restorer, no mask
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// warmThreads makes the runtime create the threads that the guest will need. The runtime keeps
// them, so that the guest can still work after agent code has used up the process limit of a
// container.
func warmThreads() {
	const threads = 12
	var ready, done sync.WaitGroup
	release := make(chan struct{})
	for range threads {
		ready.Add(1)
		done.Go(func() {
			runtime.LockOSThread()
			ready.Done()
			<-release
			runtime.UnlockOSThread()
		})
	}
	ready.Wait()
	close(release)
	done.Wait()
}

// closeEachOnExec sets close-on-exec for every open descriptor from 3 on.
func closeEachOnExec() error {
	open, err := os.ReadDir("/proc/self/fd")
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

// forgetArguments clears the command line, because programs can read it and it contains
// information about the host.
func forgetArguments() {
	for _, arg := range os.Args[2:] {
		clear(unsafe.Slice(unsafe.StringData(arg), len(arg))) // arguments are in writable memory, unlike constants
	}
	os.Args = os.Args[:2]
}
