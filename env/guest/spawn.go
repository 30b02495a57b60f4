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
	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// program is what spawn starts. All three standard descriptors are files.
type program struct {
	args  []string
	dir   string
	env   [][]byte // added to the environment that all programs get
	files [3]*os.File
	// sealed, unless nil, becomes descriptor env.SealedFile.
	sealed *os.File
	tty    bool // files are a terminal that becomes the controlling one
}

// errStart is the error of a program that could not be started, with the exit code that
// a shell would report.
type errStart struct {
	code int
	err  error
}

func (e *errStart) Error() string { return e.err.Error() }
func (e *errStart) Unwrap() error { return e.err }

// starter starts programs. Safe for concurrent use.
type starter struct {
	key    tagKey
	scopes *scopes
	reaper *reaper
	traced bool // programs are stopped at their start by tracing, else by a launcher
	// inherited goes before the environment that the host sends, which wins.
	inherited [][]byte
	config    *guestpb.HelloRequest // environment and limits of programs
}

// canTrace tells whether the kernel lets the guest stop a program at its first
// instruction.
func canTrace() bool {
	raw, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	scope := strings.TrimSpace(string(raw))
	return err != nil || scope != "2" && scope != "3" // without the setting there is no such rule
}

// environ is the environment of a program; later settings of a name win.
func (s *starter) environ(extra [][]byte) []string {
	var out []string
	at := map[string]int{}
	for _, list := range [][][]byte{s.inherited, s.config.Env, extra} {
		for _, kv := range list {
			name, _, _ := strings.Cut(string(kv), "=")
			if i, known := at[name]; known {
				out[i] = string(kv)
				continue
			}
			at[name] = len(out)
			out = append(out, string(kv))
		}
	}
	return out
}

// spawn starts p as the leader of a session of its own. Before the first instruction
// of p it sets the scope's tag and limits: the child stops at its exec until they are set.
func (s *starter) spawn(p program, sc *scope) (*child, error) {
	if len(p.args) == 0 {
		return nil, errors.New("no program given")
	}
	environ := s.environ(p.env)
	path, err := lookPath(p.args[0], p.dir, environ)
	if err != nil {
		return nil, &errStart{127, err}
	}
	if fi, err := os.Stat(p.dir); err != nil || !fi.IsDir() {
		return nil, &errStart{126, fmt.Errorf("%s: no such directory to run in", p.dir)}
	}
	attr := &syscall.ProcAttr{Dir: p.dir, Env: environ, Sys: &syscall.SysProcAttr{
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
		again := errors.Is(err, errKilledAtStart) || errors.Is(err, unix.EAGAIN) // the dead still count for a moment
		if !again || time.Now().After(end) {
			return c, err
		}
		time.Sleep(startPause)
	}
}

// Agent code that signals everything can kill or stop a program between the guest's fork
// and the program's first instruction, while the guest's thread waits for it. The guest
// kills a program that has been stopped there for stuckAfter, and tries again.
const (
	startBound = 500 * time.Millisecond
	startPause = 5 * time.Millisecond
	stuckAfter = 100 * time.Millisecond
)

var errKilledAtStart = &errStart{128 + int(unix.SIGKILL), errors.New("killed before it began")}

// startOne is one try of a start.
func (s *starter) startOne(path string, p program, attr *syscall.ProcAttr, sc *scope) (*child, error) {
	s.reaper.mu.Lock()
	defer s.reaper.mu.Unlock()
	began := time.Now()
	start := startTraced
	if !s.traced {
		start = startLaunched
	}
	endRescue := s.killStuckStarts()
	// Go forks with vfork. The runtime cannot stop a thread whose child agent code has
	// stopped: a garbage collection would wait for it, and everything, including the
	// rescue, for the collection. This ends a collection under way and starts none.
	percent := debug.SetGCPercent(-1)
	pid, err := start(path, p.args, attr, func(pid int) error { return s.limit(pid, sc.tag) })
	debug.SetGCPercent(percent)
	endRescue()
	switch {
	case errors.Is(err, errKilledAtStart):
		return nil, errKilledAtStart
	case pid == 0:
		return nil, &errStart{126, fmt.Errorf("%s: %w", p.args[0], err)}
	}
	c := &child{pid: pid, start: began, done: make(chan struct{})}
	s.reaper.children[pid] = c
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		if errors.Is(err, unix.ESRCH) {
			return nil, errKilledAtStart
		}
		return nil, fmt.Errorf("limiting %s: %w", p.args[0], err)
	}
	sc.leader.Store(int64(pid))
	return c, nil
}

// killStuckStarts kills, until end is called, the guest's children that have no tag yet
// and were stopped before their exec, while they still have the guest's own arguments. At
// their exec all children stop, and wait for a guest that may be slow.
func (s *starter) killStuckStarts() (end func()) {
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
			for _, p := range processes(s.scopes.untagged) {
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

// arguments returns a process's arguments as the kernel shows them, nil if it is gone.
func arguments(pid int) []byte {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return raw
}

// startTraced starts a program, which stops at its exec, and resumes it after limit has
// tagged it. If it returns an error and a pid, the caller must kill that process.
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
		return 0, errKilledAtStart
	}
	if err := limit(pid); err != nil {
		return pid, err
	}
	return pid, unix.PtraceDetach(pid)
}

// lookPath finds name as a shell would: a name with a slash is taken from dir,
// another is searched in the PATH of env.
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
