package guest

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// runFilter returns the result of a filter for a system call, as the kernel computes it.
func runFilter(t *testing.T, filter []unix.SockFilter, arch, call uint32, args ...uint64) uint32 {
	t.Helper()
	data := binary.NativeEndian.AppendUint64(nil, 0)
	binary.NativeEndian.PutUint32(data, call)
	binary.NativeEndian.PutUint32(data[4:], arch)
	data = append(data, make([]byte, 8)...) // the instruction pointer
	for i := range 6 {
		arg := uint64(0)
		if i < len(args) {
			arg = args[i]
		}
		data = binary.NativeEndian.AppendUint64(data, arg)
	}
	value := uint32(0)
	for at := 0; at < len(filter); at++ {
		step := filter[at]
		matches := map[uint16]bool{
			unix.BPF_JEQ: value == step.K, unix.BPF_JGE: value >= step.K, unix.BPF_JSET: value&step.K != 0,
		}
		switch step.Code & 7 {
		case unix.BPF_LD:
			value = binary.NativeEndian.Uint32(data[step.K:])
		case unix.BPF_RET:
			return step.K
		default:
			if matches[step.Code&0xf0] {
				at += int(step.Jt)
			} else {
				at += int(step.Jf)
			}
		}
	}
	t.Fatal("the filter ended without a result")
	return 0
}

func TestFilterRefuses(t *testing.T) {
	const arch, allow = uint32(unix.AUDIT_ARCH_X86_64), uint32(unix.SECCOMP_RET_ALLOW)
	refused := func(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }
	key := tagKey{1<<32 | 2, 3<<32 | 4}
	for _, c := range []struct {
		name string
		want uint32
		call uint32
		args []uint64
	}{
		{"a call that no rule names", allow, unix.SYS_READ, nil},
		{"a call of x32", refused(unix.ENOSYS), x32 | unix.SYS_READ, nil},
		{"a socket", allow, unix.SYS_SOCKET, []uint64{unix.AF_UNIX}},
		{"a socket to the hypervisor", refused(unix.EAFNOSUPPORT), unix.SYS_SOCKET, []uint64{unix.AF_VSOCK}},
		{"io_uring", refused(unix.ENOSYS), unix.SYS_IO_URING_SETUP, nil},
		{"a fork", allow, unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}},
		{"a user namespace", refused(unix.EPERM), unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWUSER | unix.CLONE_NEWNS}},
		{"a new tag", refused(unix.EPERM), unix.SYS_SETRLIMIT, []uint64{unix.RLIMIT_RTTIME}},
		{"another limit", allow, unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_CORE, 1}},
		{"reading a tag", allow, unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_RTTIME}},
		{"a new tag, its address above 4 GiB", refused(unix.EPERM), unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_RTTIME, 1 << 32}},
		{"a new tag with the key", allow, unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_RTTIME, 1, 0, key[0], key[1]}},
		{"a new tag with half the key", refused(unix.EPERM), unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_RTTIME, 1, 0, key[0], 4}},
		{"an anonymous file", refused(unix.ENOSYS), unix.SYS_MEMFD_CREATE, nil},
		{"an anonymous file, with the key", allow, unix.SYS_MEMFD_CREATE, []uint64{0, 0, 0, 0, key[0], key[1]}},
		{"the keyring", refused(unix.EPERM), unix.SYS_KEYCTL, nil},
	} {
		if got := runFilter(t, filterProgram(arch, rules(key, false)), arch, c.call, c.args...); got != c.want {
			t.Errorf("%s: %x, want %x", c.name, got, c.want)
		}
	}
	for pinned, want := range map[bool]uint32{true: refused(unix.EPERM), false: allow} {
		if got := runFilter(t, filterProgram(arch, rules(key, pinned)), arch, unix.SYS_SCHED_SETAFFINITY); got != want {
			t.Errorf("sched_setaffinity with pinned %v: %x, want %x", pinned, got, want)
		}
	}
	if got := runFilter(t, filterProgram(arch, rules(key, false)), arch+1, unix.SYS_READ); got != refused(unix.ENOSYS) {
		t.Errorf("another architecture: %x", got)
	}
}
