package guest

import (
	"crypto/rand"
	"encoding/binary"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tagKey is a secret that lets only the guest change the resource limit that tags a process
// (see scope) and create anonymous files. The guest passes the key in two arguments that these
// system calls do not use, and the filter compares it. Programs cannot read the filter.
type tagKey [2]uint64

func newTagKey() tagKey {
	var raw [16]byte
	rand.Read(raw[:]) // never fails
	return tagKey{binary.LittleEndian.Uint64(raw[:8]), binary.LittleEndian.Uint64(raw[8:])}
}

// memfd creates an anonymous file.
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

// condition tests 32 bits of a system call's arguments.
type condition struct {
	offset, value uint32
	test          uint16 // unix.BPF_JEQ, or unix.BPF_JSET: the argument has at least one of the bits of value
	want          bool   // the result of the test that fulfills the condition
}

// low and high return the offsets of the halves of argument i, counted from 0, in struct
// seccomp_data.
func low(i uint32) uint32  { return 16 + 8*i }
func high(i uint32) uint32 { return low(i) + 4 }

func equal(offset, value uint32) condition    { return condition{offset, value, unix.BPF_JEQ, true} }
func notEqual(offset, value uint32) condition { return condition{offset, value, unix.BPF_JEQ, false} }
func noBits(offset, bits uint32) condition    { return condition{offset, bits, unix.BPF_JSET, false} }

// passed returns the conditions that hold if a system call passes the key in its last two
// arguments.
func (k tagKey) passed() []condition {
	return []condition{
		equal(low(4), uint32(k[0])), equal(high(4), uint32(k[0]>>32)),
		equal(low(5), uint32(k[1])), equal(high(5), uint32(k[1]>>32)),
	}
}

// rule makes a system call fail with an error, unless all conditions of one exception hold.
type rule struct {
	call       uint32
	errno      unix.Errno
	exceptions [][]condition
}

// rules returns rules for system calls that reach what namespaces do not isolate. To programs,
// the system seems to lack these calls.
func rules(key tagKey, pinned bool) []rule {
	except := func(exceptions ...[]condition) [][]condition { return exceptions }
	when := func(all ...condition) []condition { return all }
	out := []rule{
		// vsock reaches the hypervisor and ignores network namespaces. io_uring can create
		// sockets without the system call.
		{unix.SYS_SOCKET, unix.EAFNOSUPPORT, except(when(notEqual(low(0), unix.AF_VSOCK)))},
		{unix.SYS_IO_URING_SETUP, unix.ENOSYS, nil},
		// A user namespace gives its owner access to far more of the kernel. A filter cannot
		// read the flags of clone3, which are in memory; libraries fall back to clone.
		{unix.SYS_CLONE, unix.EPERM, except(when(noBits(low(0), unix.CLONE_NEWUSER)))},
		{unix.SYS_UNSHARE, unix.EPERM, except(when(noBits(low(0), unix.CLONE_NEWUSER)))},
		{unix.SYS_CLONE3, unix.ENOSYS, nil},
		// This limit tags a process. prlimit without a new value only reads it.
		{unix.SYS_SETRLIMIT, unix.EPERM, except(when(notEqual(low(0), unix.RLIMIT_RTTIME)))},
		{unix.SYS_PRLIMIT64, unix.EPERM, except(when(notEqual(low(1), unix.RLIMIT_RTTIME)),
			when(equal(low(2), 0), equal(high(2), 0)), key.passed())},
		// Every process inherits the host's session keyring.
		{unix.SYS_ADD_KEY, unix.EPERM, nil}, {unix.SYS_REQUEST_KEY, unix.EPERM, nil}, {unix.SYS_KEYCTL, unix.EPERM, nil},
		// The content of an anonymous file counts toward no limit on memory or disk; libraries
		// fall back to other files.
		{unix.SYS_MEMFD_SECRET, unix.ENOSYS, nil},
		{unix.SYS_MEMFD_CREATE, unix.ENOSYS, except(key.passed())},
	}
	if pinned {
		out = append(out, rule{unix.SYS_SCHED_SETAFFINITY, unix.EPERM, nil})
	}
	return out
}

// x32 is set in the numbers of the x32 system calls of amd64. The rules do not name these
// numbers, so the filter refuses all of them.
const x32 = 0x40000000

// filterProgram compiles rules to a seccomp filter. The filter allows calls without a rule.
func filterProgram(arch uint32, rules []rule) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	jump := func(test uint16, value uint32, yes, no int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | test, K: value, Jt: uint8(yes), Jf: uint8(no)}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	refuse := func(e unix.Errno) unix.SockFilter { return answer(unix.SECCOMP_RET_ERRNO | uint32(e)) }
	const callOffset, archOffset = 0, 4 // offsets in struct seccomp_data
	out := []unix.SockFilter{
		load(archOffset), jump(unix.BPF_JEQ, arch, 1, 0), refuse(unix.ENOSYS),
		load(callOffset), jump(unix.BPF_JGE, x32, 0, 1), refuse(unix.ENOSYS),
	}
	for _, r := range rules {
		var body []unix.SockFilter
		for _, conditions := range r.exceptions {
			for i, c := range conditions {
				yes, no := 0, 2*(len(conditions)-i)-1 // to the next condition, or past the answer
				if !c.want {
					yes, no = no, yes
				}
				body = append(body, load(c.offset), jump(c.test, c.value, yes, no))
			}
			body = append(body, answer(unix.SECCOMP_RET_ALLOW))
		}
		body = append(body, refuse(r.errno))
		out = append(append(out, jump(unix.BPF_JEQ, r.call, 0, len(body))), body...)
	}
	return append(out, answer(unix.SECCOMP_RET_ALLOW))
}

// filterSyscalls installs the filter for all threads of this process and for everything that
// it starts later. It needs no_new_privs, which every driver with isolation sets. pinned keeps
// programs on the processors that they start on.
func filterSyscalls(key tagKey, pinned bool) error {
	arch, known := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !known {
		return nil
	}
	filter := filterProgram(arch, rules(key, pinned))
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return errno
	}
	return nil
}
