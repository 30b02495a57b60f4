package guest

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// limit tags a new process and sets its resource limits and priority.
func (s *starter) limit(pid int, tag uint64) error {
	for _, l := range s.limits(tag) {
		var old unix.Rlimit
		if err := unix.Prlimit(pid, l.resource, nil, &old); err != nil {
			return err
		}
		hard := min(l.value, old.Max)
		if err := s.tagKey.prlimit(pid, l.resource, unix.Rlimit{Cur: hard, Max: hard}); err != nil {
			return err
		}
	}
	// Make the kernel kill programs before the guest when memory runs out. If this fails, the
	// kernel usually chooses a program anyway.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("500"), 0)
	if !s.scopes.isInit {
		return nil
	}
	return unix.Setpriority(unix.PRIO_PROCESS, pid, programNice())
}

// niceOffset is the difference between the nice values of programs and the guest. With it, the
// scheduler gives the guest about nine times the weight of a program, so that the guest gets
// processor time to kill programs even if many are runnable. Programs cannot raise their own
// priority.
const niceOffset = 10

// programNice returns the nice value of programs, which is at most 19. The guest's own value is
// not 0 if tracesmith runs at a low priority.
func programNice() int {
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // the system call returns 20 - nice
	if err != nil {
		own = 20
	}
	return min(20-own+niceOffset, 19)
}

type rlimit struct {
	resource int
	value    uint64
}

// limits returns the resource limits of a program with this tag.
func (s *starter) limits(tag uint64) []rlimit {
	c := s.config
	out := []rlimit{{unix.RLIMIT_RTTIME, tag}, {unix.RLIMIT_CORE, 0}}
	add := func(resource int, v int64) {
		if v > 0 {
			out = append(out, rlimit{resource, uint64(v)})
		}
	}
	// This limits what a program can allocate between two checks of the watchdog. It is
	// generous because programs reserve far more address space than they use.
	add(unix.RLIMIT_AS, 4*c.MemoryBytes)
	add(unix.RLIMIT_FSIZE, c.FileBytes)
	add(unix.RLIMIT_NOFILE, c.OpenFiles)
	add(unix.RLIMIT_CPU, c.CpuSeconds)
	if c.LimitProcesses {
		// The watchdog enforces the actual limit; this one stops a fork bomb between two
		// checks. It is higher because the guest's own threads count as well.
		add(unix.RLIMIT_NPROC, c.Processes+c.Processes/4+64)
	}
	return out
}
