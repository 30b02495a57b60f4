package guest

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// limit tags a process that was just started and sets its resource limits and priority.
func (s *starter) limit(pid int, tag uint64) error {
	for _, l := range s.limits(tag) {
		var old unix.Rlimit
		if err := unix.Prlimit(pid, l.resource, nil, &old); err != nil {
			return err
		}
		hard := min(l.value, old.Max)
		if err := s.key.prlimit(pid, l.resource, unix.Rlimit{Cur: hard, Max: hard}); err != nil {
			return err
		}
	}
	// When memory runs out, the kernel kills programs before the guest. Best effort:
	// its own choice is usually the same.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("500"), 0)
	if !s.scopes.alone {
		return nil
	}
	return unix.Setpriority(unix.PRIO_PROCESS, pid, programNice())
}

// below is how many steps lower the priority of programs is than the guest's. The guest
// then weighs as much as nine of them, so that it gets processor time to kill them however
// many are runnable. Programs cannot raise theirs.
const below = 10

// programNice is the nice value of programs, relative to the guest's own, which is not 0 if
// tracesmith itself runs at a low priority. 19 is the highest.
func programNice() int {
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // the kernel's own scale: 20 - nice
	if err != nil {
		own = 20
	}
	return min(20-own+below, 19)
}

type rlimit struct {
	resource int
	value    uint64
}

// limits are the resource limits of a program with this tag.
func (s *starter) limits(tag uint64) []rlimit {
	c := s.config
	out := []rlimit{{unix.RLIMIT_RTTIME, tag}, {unix.RLIMIT_CORE, 0}}
	add := func(resource int, v int64) {
		if v > 0 {
			out = append(out, rlimit{resource, uint64(v)})
		}
	}
	// A coarse bound on what a program can allocate between two looks of the watchdog.
	// Programs reserve far more address space than they use.
	add(unix.RLIMIT_AS, 4*c.MemoryBytes)
	add(unix.RLIMIT_FSIZE, c.FileBytes)
	add(unix.RLIMIT_NOFILE, c.OpenFiles)
	add(unix.RLIMIT_CPU, c.CpuSeconds)
	if c.LimitProcesses {
		// The watchdog enforces the limit itself; this stops a fork bomb between two of
		// its looks. The guest's own threads count as well.
		add(unix.RLIMIT_NPROC, c.Processes+c.Processes/4+64)
	}
	return out
}
