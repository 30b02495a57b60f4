package guest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// process describes a process as /proc shows it.
type process struct {
	pid       int
	start     uint64 // clock ticks since boot; pid and start together never name another process
	tag       uint64
	parent    int
	stopped   bool // by a signal or a tracer
	zombie    bool // if threads > 1, only the first thread is one
	memThread int  // the thread whose files in /proc tell the memory use
	threads   int64
	rss       int64 // bytes, shared pages included
}

type identity struct {
	pid   int
	start uint64
}

func (p process) identity() identity { return identity{p.pid, p.start} }

// tagOf reads the tag that a process inherited (see scope). ok is false if the process
// has ended. A process that hides its tag is reported with tag 0.
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

// listPIDs returns the names of the directories of all processes in /proc, including zombies.
func listPIDs() []string {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	out := names[:0]
	for _, name := range names {
		if c := name[0]; c >= '0' && c <= '9' {
			out = append(out, name)
		}
	}
	return out
}

// processes lists every live process whose tag is accepted.
func processes(accept func(tag uint64) bool) []process {
	live, _ := processesAndZombies(accept)
	return live
}

// processesAndZombies also lists zombies, because the kernel counts them as processes. It
// omits those whose parent is the guest, which waits for them soon.
func processesAndZombies(accept func(tag uint64) bool) (live, zombies []process) {
	self := os.Getpid()
	for _, name := range listPIDs() {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == self {
			continue
		}
		tag, ok := tagOf(pid)
		if !ok || !accept(tag) {
			continue
		}
		p, ok := readStat(pid)
		p.tag = tag
		switch {
		case ok:
			live = append(live, p)
		case p.zombie && p.parent != self:
			zombies = append(zombies, p)
		}
	}
	return live, zombies
}

// readStat reads /proc/PID/stat. ok is false if the process has ended or is a zombie. The
// kernel shows a process as a zombie without memory once its first thread has ended;
// readStat then reads another of its threads.
func readStat(pid int) (_ process, ok bool) {
	p, ok := parseStat(pid)
	if !ok || !p.zombie {
		return p, ok
	}
	if p.threads < 2 {
		return p, false
	}
	dir, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return process{}, false
	}
	defer dir.Close()
	threads, _ := dir.Readdirnames(-1)
	for _, name := range threads {
		tid, err := strconv.Atoi(name)
		if t, ok := parseStat(tid); err == nil && ok && !t.zombie {
			p.memThread, p.rss, p.stopped = tid, t.rss, t.stopped
			return p, true
		}
	}
	return process{}, false
}

// parseStat reads /proc/ID/stat (proc_pid_stat(5)) of a process or a thread.
func parseStat(id int) (process, bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		return process{}, false
	}
	// The name in parentheses may contain anything, so count the fields after it.
	f := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(f) < 22 || f[0][0] == 'X' {
		return process{}, false
	}
	num := func(i int) int64 {
		n, _ := strconv.ParseInt(string(f[i]), 10, 64)
		return n
	}
	return process{
		pid: id, memThread: id, zombie: f[0][0] == 'Z', stopped: f[0][0]|0x20 == 't', parent: int(num(1)), threads: num(17),
		start: uint64(num(19)), rss: num(21) * int64(os.Getpagesize()),
	}, true
}

// pss returns the proportional set size in bytes, in which pages shared by n processes count
// 1/n. If the kernel does not report it, pss returns the resident set size.
func (p process) pss() int64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.memThread))
	if err != nil {
		now, _ := readStat(p.pid) // a process that has ended uses no memory
		return now.rss
	}
	_, rest, ok := bytes.Cut(raw, []byte("\nPss:"))
	if f := bytes.Fields(rest); ok && len(f) > 0 {
		if kb, err := strconv.ParseInt(string(f[0]), 10, 64); err == nil {
			return kb << 10
		}
	}
	return p.rss
}

// signal sends sig to p, unless p has ended and another process has its number.
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
