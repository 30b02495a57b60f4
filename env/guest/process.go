package guest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// process is one live process of a scope as /proc shows it.
type process struct {
	pid     int
	start   uint64 // clock ticks since boot; with pid it names the process for good
	tag     uint64
	threads int64
	rss     int64 // bytes, shared pages included
}

type identity struct {
	pid   int
	start uint64
}

func (p process) identity() identity { return identity{p.pid, p.start} }

// tagOf reads the mark a process inherited (see scopes); ok is false when it is
// gone. A process that hides it is reported as mark 0.
func tagOf(pid int) (tag uint64, ok bool) {
	var l unix.Rlimit
	switch err := unix.Prlimit(pid, unix.RLIMIT_RTTIME, nil, &l); err {
	case nil:
		return l.Max, true
	case unix.EPERM:
		return 0, true
	default:
		return 0, false
	}
}

// processes lists every live process whose tag is accepted, zombies excluded.
func processes(accept func(tag uint64) bool) []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	self := os.Getpid()
	var out []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == self {
			continue
		}
		tag, ok := tagOf(pid)
		if !ok || !accept(tag) {
			continue
		}
		if p, ok := readStat(pid); ok {
			p.tag = tag
			out = append(out, p)
		}
	}
	return out
}

// readStat parses /proc/PID/stat (proc_pid_stat(5)); false for the dead.
func readStat(pid int) (process, bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	// The name in parentheses may hold anything; fields are counted after it.
	f := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(f) < 22 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return process{}, false
	}
	num := func(i int) int64 {
		n, _ := strconv.ParseInt(string(f[i]), 10, 64)
		return n
	}
	return process{
		pid: pid, threads: num(17), start: uint64(num(19)), rss: num(21) * int64(os.Getpagesize()),
	}, true
}

// pss is the proportional set size: pages shared by n processes count 1/n. Where
// the kernel does not tell, the resident size stands in.
func (p process) pss() int64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.pid))
	if err != nil {
		return p.rss
	}
	_, rest, ok := bytes.Cut(raw, []byte("\nPss:"))
	if f := bytes.Fields(rest); ok && len(f) > 0 {
		if kb, err := strconv.ParseInt(string(f[0]), 10, 64); err == nil {
			return kb << 10
		}
	}
	return p.rss
}

// signal sends sig if the process is still the one that was seen.
func (p process) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, ok := readStat(p.pid); ok && now.start == p.start {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}
