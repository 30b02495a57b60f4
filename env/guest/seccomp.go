package guest

import (
	"crypto/rand"
	"encoding/binary"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What namespaces do not keep in: sockets to the hypervisor (vsock knows no
// network namespaces), io_uring (which makes sockets without the system call),
// and user namespaces (whose owner reaches far more of the kernel). Programs see
// a system that does not have these. Nor may they change the limit they are known
// by. Numbers of seccomp(2), per architecture.
var syscallNumbers = map[string]struct{ arch, socket, clone, clone3, unshare, ioUring, setrlimit, prlimit uint32 }{
	"amd64": {unix.AUDIT_ARCH_X86_64, 41, 56, 435, 272, 425, 160, 302},
	"arm64": {unix.AUDIT_ARCH_AARCH64, 198, 220, 435, 97, 425, 164, 261},
}

// tagKey lets the guest alone change the limit that serves as a process's tag
// (see scopes), and make files without a name. It is passed in two arguments that
// the system call does not use. The filter, which programs cannot read, compares it.
type tagKey [2]uint64

func newTagKey() tagKey {
	var raw [16]byte
	rand.Read(raw[:]) // never fails
	return tagKey{binary.LittleEndian.Uint64(raw[:8]), binary.LittleEndian.Uint64(raw[8:])}
}

// keyedSteps is how many instructions only makes.
const keyedSteps = 10

// only ends a branch of a filter: it allows a system call that passes the key in its
// last two arguments, and refuses any other with no.
func (k tagKey) only(no unix.Errno) []unix.SockFilter {
	const fifth = 16 + 4*8 // offset of the fifth argument in struct seccomp_data
	var out []unix.SockFilter
	for i, word := range []uint32{uint32(k[0]), uint32(k[0] >> 32), uint32(k[1]), uint32(k[1] >> 32)} {
		out = append(out, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: fifth + 4*uint32(i)},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, K: word, Jf: uint8(keyedSteps - 3 - 2*i)})
	}
	return append(out, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(no)})
}

// memfd makes a file without a name.
func (k tagKey) memfd(flags int) (int, error) {
	name := [...]byte{'s', 'e', 'a', 'l', 'e', 'd', 0}
	fd, _, errno := unix.RawSyscall6(unix.SYS_MEMFD_CREATE, uintptr(unsafe.Pointer(&name)), uintptr(flags), 0, 0,
		uintptr(k[0]), uintptr(k[1]))
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// prlimit sets a resource limit of another process.
func (k tagKey) prlimit(pid, resource int, l unix.Rlimit) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, uintptr(pid), uintptr(resource), uintptr(unsafe.Pointer(&l)), 0,
		uintptr(k[0]), uintptr(k[1]))
	if errno != 0 {
		return errno
	}
	return nil
}

// x32 system calls of amd64 have this bit; they would pass by the numbers above.
const x32 = 0x40000000

// ignoreSignal is sigaction(2) for signals that os/signal does not know.
func ignoreSignal(sig uintptr) error {
	action := [4]uintptr{1} // struct kernel_sigaction: SIG_IGN, no flags, no restorer, no mask
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// filterSyscalls binds this process and all it will start. It needs
// no_new_privs, which every driver with isolation sets.
func filterSyscalls(key tagKey) error {
	n, known := syscallNumbers[runtime.GOARCH]
	if !known {
		return nil
	}
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	jump := func(test uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, K: k, Jt: yes, Jf: no}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	fail := func(e unix.Errno) unix.SockFilter { return answer(unix.SECCOMP_RET_ERRNO | uint32(e)) }
	const number, arch, first = 0, 4, 16 // offsets in struct seccomp_data; low half of the first argument
	low, high := func(i uint32) uint32 { return first + 8*i }, func(i uint32) uint32 { return first + 8*i + 4 }
	filter := slices.Concat([]unix.SockFilter{
		load(arch),
		jump(unix.BPF_JEQ, n.arch, 1, 0),
		fail(unix.ENOSYS),
		load(number),
		jump(unix.BPF_JGE, x32, 0, 1),
		fail(unix.ENOSYS),
		jump(unix.BPF_JEQ, n.clone3, 1, 0), // its flags lie in memory; libraries fall back to clone
		jump(unix.BPF_JEQ, n.ioUring, 0, 1),
		fail(unix.ENOSYS),
		jump(unix.BPF_JEQ, n.setrlimit, 0, 4),
		load(first),
		jump(unix.BPF_JEQ, unix.RLIMIT_RTTIME, 0, 1),
		fail(unix.EPERM),
		answer(unix.SECCOMP_RET_ALLOW),
		jump(unix.BPF_JEQ, n.prlimit, 0, 18),
		load(low(1)), // of which limit
		jump(unix.BPF_JEQ, unix.RLIMIT_RTTIME, 1, 0),
		answer(unix.SECCOMP_RET_ALLOW),
		load(low(2)), // the new value: none is only a look
		jump(unix.BPF_JEQ, 0, 0, 3),
		load(high(2)),
		jump(unix.BPF_JEQ, 0, 0, 1),
		answer(unix.SECCOMP_RET_ALLOW),
	}, key.only(unix.EPERM), []unix.SockFilter{
		jump(unix.BPF_JEQ, n.socket, 0, 4),
		load(first),
		jump(unix.BPF_JEQ, unix.AF_VSOCK, 0, 1),
		fail(unix.EAFNOSUPPORT),
		answer(unix.SECCOMP_RET_ALLOW),
		jump(unix.BPF_JEQ, n.clone, 1, 0),
		jump(unix.BPF_JEQ, n.unshare, 0, 3),
		load(first),
		jump(unix.BPF_JSET, unix.CLONE_NEWUSER, 0, 1),
		fail(unix.EPERM),
		answer(unix.SECCOMP_RET_ALLOW),
	})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return errno
	}
	return nil
}
