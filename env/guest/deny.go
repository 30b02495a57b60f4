package guest

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denyCalls adds a filter of system calls that have no place in a sandbox at
// all. Keys: the host's session keyring is inherited by everything below it.
// Files without a name: what they hold counts for no process and no file system;
// libraries that would use them fall back to others. Only the guest can make one. A sandbox that is pinned to
// some processors stays there.
func denyCalls(pinned bool, key tagKey) error {
	arch, known := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !known {
		return nil
	}
	type call struct {
		number uint32
		answer unix.Errno
	}
	denied := []call{
		{unix.SYS_ADD_KEY, unix.EPERM}, {unix.SYS_REQUEST_KEY, unix.EPERM}, {unix.SYS_KEYCTL, unix.EPERM},
		{unix.SYS_MEMFD_SECRET, unix.ENOSYS},
	}
	if pinned {
		denied = append(denied, call{unix.SYS_SCHED_SETAFFINITY, unix.EPERM})
	}
	const number, archAt = 0, 4 // offsets in struct seccomp_data
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: archAt},
		{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, K: arch, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
	}
	for _, c := range denied {
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, K: c.number, Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(c.answer)})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, K: unix.SYS_MEMFD_CREATE, Jf: keyedSteps})
	filter = append(filter, key.only(unix.ENOSYS)...)
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return errno
	}
	return nil
}
