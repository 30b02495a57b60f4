package guest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env"
)

// program is what spawn starts. All three standard descriptors are files.
type program struct {
	args  []string
	dir   string
	env   []string
	files [3]*os.File
	// sealed, unless nil, becomes descriptor env.SealedFile.
	sealed *os.File
	tty    bool // files are a terminal that becomes the controlling one
}

// errStart is a program that could not be started, with the exit code a shell
// would report.
type errStart struct {
	code int
	err  error
}

func (e *errStart) Error() string { return e.err.Error() }
func (e *errStart) Unwrap() error { return e.err }

// spawn starts p as leader of a session of its own, with the scope's tag and
// limits in place before its first instruction: the child stops at its exec,
// is marked, and goes on.
func (s *server) spawn(p program, sc *scope) (*child, error) {
	path, err := lookPath(p.args[0], p.dir, p.env)
	if err != nil {
		return nil, &errStart{127, err}
	}
	if fi, err := os.Stat(p.dir); err != nil || !fi.IsDir() {
		return nil, &errStart{126, fmt.Errorf("%s: no such directory to run in", p.dir)}
	}
	attr := &syscall.ProcAttr{Dir: p.dir, Env: p.env, Sys: &syscall.SysProcAttr{
		Setsid: true, Setctty: p.tty, Ptrace: s.traced,
	}}
	for _, f := range p.files {
		attr.Files = append(attr.Files, f.Fd())
	}
	if p.sealed != nil {
		for len(attr.Files) < env.SealedFile {
			attr.Files = append(attr.Files, ^uintptr(0)) // closed
		}
		attr.Files = append(attr.Files, p.sealed.Fd())
	}
	// Only the thread that forked may let a traced child go.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer runtime.KeepAlive(p)
	for end := time.Now().Add(startBound); ; {
		c, err := s.startOne(path, p, attr, sc)
		again := errors.Is(err, errUnborn) || errors.Is(err, unix.EAGAIN) // the dead still count for a moment
		if !again || time.Now().After(end) {
			return c, err
		}
		time.Sleep(startPause)
	}
}

// Agent code that signals everything can kill or stop a program between the
// guest's fork and its first instruction, where the guest's thread waits for it.
// One that has stopped there for stuckAfter is killed, and the start tried again.
const (
	startBound = 500 * time.Millisecond
	startPause = 5 * time.Millisecond
	stuckAfter = 100 * time.Millisecond
)

var errUnborn = &errStart{128 + int(unix.SIGKILL), errors.New("killed before it began")}

// startOne is one try of a start.
func (s *server) startOne(path string, p program, attr *syscall.ProcAttr, sc *scope) (*child, error) {
	s.reaper.mu.Lock()
	defer s.reaper.mu.Unlock()
	began := time.Now()
	start := startTraced
	if !s.traced {
		start = startLaunched
	}
	rescued := s.rescueUnborn()
	// Go forks with vfork, and a thread whose child agent code has stopped cannot
	// be stopped itself: a collection would wait for it, and everything, the rescue
	// too, for the collection. This ends the one under way and begins none.
	percent := debug.SetGCPercent(-1)
	pid, err := start(path, p.args, attr, func(pid int) error { return s.limit(pid, sc.tag) })
	debug.SetGCPercent(percent)
	rescued()
	switch {
	case errors.Is(err, errUnborn):
		return nil, errUnborn
	case pid == 0:
		return nil, &errStart{126, fmt.Errorf("%s: %w", p.args[0], err)}
	}
	c := &child{pid: pid, start: began, done: make(chan struct{})}
	s.reaper.children[pid] = c
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		if errors.Is(err, unix.ESRCH) {
			return nil, errUnborn
		}
		return nil, fmt.Errorf("limiting %s: %w", p.args[0], err)
	}
	sc.leader.Store(int64(pid))
	return c, nil
}

// rescueUnborn kills, until it is told to end, the guest's children that have no
// mark yet and are stopped before their exec, while they still have the guest's own
// arguments. At their exec all stop, and wait for a guest that may be slow.
func (s *server) rescueUnborn() (end func()) {
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(stuckAfter)
		defer tick.Stop()
		for self := os.Getpid(); ; {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			for _, p := range processes(s.scopes.unmarked) {
				if p.parent == self && p.stopped && bytes.Equal(arguments(p.pid), arguments(self)) {
					p.signal(unix.SIGKILL)
				}
			}
		}
	})
	return func() {
		close(over)
		watch.Wait()
	}
}

// arguments are those of a process as the kernel shows them, nil if it is gone.
func arguments(pid int) []byte {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return raw
}

// startTraced starts a program, which stops at its exec, and lets it go once limit
// has marked it. A pid with an error is one that must be killed.
func startTraced(path string, args []string, attr *syscall.ProcAttr, limit func(pid int) error) (pid int, err error) {
	if pid, _, err = syscall.StartProcess(path, args, attr); err != nil {
		return 0, err
	}
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &ws, 0, nil)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return pid, err
		}
	}
	if !ws.Stopped() {
		return 0, errUnborn
	}
	if err := limit(pid); err != nil {
		return pid, err
	}
	return pid, unix.PtraceDetach(pid)
}

// limit marks a process that was started with its scope's tag, and limits it.
func (s *server) limit(pid int, tag uint64) error {
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
	// When memory runs out, programs go before the guest. Best effort: the
	// kernel's own choice is usually the same.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("500"), 0)
	if !s.scopes.alone {
		return nil
	}
	return unix.Setpriority(unix.PRIO_PROCESS, pid, programNice())
}

// below is how many steps of priority the programs in a sandbox are below the
// guest, which weighs as much as nine of them: however many are runnable, it has its
// turn to end them. Programs cannot raise theirs.
const below = 10

// programNice is the priority of programs: below the guest's own, which is not the
// usual one where tracesmith itself gives way to others. There is none below 19.
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

// limits are the resource limits of a program in the scope of tag.
func (s *server) limits(tag uint64) []rlimit {
	c := s.config
	out := []rlimit{{unix.RLIMIT_RTTIME, tag}, {unix.RLIMIT_CORE, 0}}
	add := func(resource int, v int64) {
		if v > 0 {
			out = append(out, rlimit{resource, uint64(v)})
		}
	}
	// Address space is a coarse fence against one burst between two looks of the
	// watchdog; programs reserve far more than they use.
	add(unix.RLIMIT_AS, 4*c.MemoryBytes)
	add(unix.RLIMIT_FSIZE, c.FileBytes)
	add(unix.RLIMIT_NOFILE, c.OpenFiles)
	add(unix.RLIMIT_CPU, c.CpuSeconds)
	if c.LimitProcesses {
		// The watchdog ends a tree at the limit itself; this stops a fork bomb
		// between two looks. The guest's own threads count too.
		add(unix.RLIMIT_NPROC, c.Processes+c.Processes/4+64)
	}
	return out
}

// lookPath finds name as a shell would: a name with a slash is taken from dir,
// another is searched in env's PATH.
func lookPath(name, dir string, env []string) (string, error) {
	if name == "" {
		return "", errors.New("empty program name")
	}
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if _, err := os.Stat(name); err != nil {
			return "", fmt.Errorf("%s: no such file", name)
		}
		return name, nil
	}
	search := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v
		}
	}
	for _, d := range filepath.SplitList(search) {
		p := filepath.Join(d, name)
		if fi, err := os.Stat(p); err == nil && !fi.IsDir() && fi.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s: command not found", name)
}
