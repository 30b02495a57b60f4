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

// program describes a program for spawn to start.
type program struct {
	args  []string
	dir   string
	env   [][]byte    // added to the environment that all programs get
	files [3]*os.File // standard input, output and error
	// sealed becomes descriptor env.SealedFile. It may be nil.
	sealed *os.File
	tty    bool // files are a pseudo terminal, which becomes the controlling terminal
}

// startError is the error of a program that could not be started, with the exit code that
// a shell would report.
type startError struct {
	code int
	err  error
}

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// starter starts programs. Safe for concurrent use.
type starter struct {
	tagKey tagKey
	scopes *scopes
	reaper *reaper
	traced bool // tracing stops programs at their start; if false, a launcher does
	// inherited is the base environment. The environment that the host sends overrides it.
	inherited [][]byte
	config    *guestpb.HelloRequest // environment and limits of programs
}

// canTrace reports whether the kernel lets the guest trace programs, which stops them at
// their first instruction.
func canTrace() bool {
	raw, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	scope := strings.TrimSpace(string(raw))
	return err != nil || scope != "2" && scope != "3" // a kernel without the setting allows tracing
}

// environ returns the environment of a program. Of several settings of a name, it keeps the last.
func (s *starter) environ(extra [][]byte) []string {
	var out []string
	index := map[string]int{}
	for _, list := range [][][]byte{s.inherited, s.config.Env, extra} {
		for _, kv := range list {
			name, _, _ := strings.Cut(string(kv), "=")
			if i, known := index[name]; known {
				out[i] = string(kv)
				continue
			}
			index[name] = len(out)
			out = append(out, string(kv))
		}
	}
	return out
}

// spawn starts p as the leader of a new session. p executes its first instruction only after
// it has the limits of programs and the tag by which the guest finds the processes of scope sc.
func (s *starter) spawn(p program, sc *scope) (*child, error) {
	if len(p.args) == 0 {
		return nil, errors.New("no program given")
	}
	environ := s.environ(p.env)
	path, err := lookPath(p.args[0], p.dir, environ)
	if err != nil {
		return nil, &startError{127, err}
	}
	if fi, err := os.Stat(p.dir); err != nil || !fi.IsDir() {
		return nil, &startError{126, fmt.Errorf("%s: no such directory to run in", p.dir)}
	}
	attr := &syscall.ProcAttr{Dir: p.dir, Env: environ, Sys: &syscall.SysProcAttr{
		Setsid: true, Setctty: p.tty, Ptrace: s.traced,
	}}
	for _, f := range p.files {
		attr.Files = append(attr.Files, f.Fd())
	}
	if p.sealed != nil {
		for len(attr.Files) < env.SealedFile {
			attr.Files = append(attr.Files, ^uintptr(0)) // a closed descriptor
		}
		attr.Files = append(attr.Files, p.sealed.Fd())
	}
	// Only the thread that forked a traced child may detach from it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer runtime.KeepAlive(p)
	for end := time.Now().Add(startTimeout); ; {
		c, err := s.startOne(path, p, attr, sc)
		again := errors.Is(err, errKilledAtStart) || errors.Is(err, unix.EAGAIN) // killed processes count against the limit for a moment
		if !again || time.Now().After(end) {
			return c, err
		}
		time.Sleep(retryPause)
	}
}

// Agent code that signals everything can kill or stop a program between the guest's fork
// and the program's first instruction, while the guest's thread waits for it. The guest looks
// for stopped programs every rescueInterval, kills them, and tries again.
const (
	startTimeout   = 500 * time.Millisecond
	retryPause     = 5 * time.Millisecond
	rescueInterval = 100 * time.Millisecond
)

var errKilledAtStart = &startError{128 + int(unix.SIGKILL), errors.New("killed before it began")}

// startOne tries once to start p.
func (s *starter) startOne(path string, p program, attr *syscall.ProcAttr, sc *scope) (*child, error) {
	s.reaper.mu.Lock()
	defer s.reaper.mu.Unlock()
	began := time.Now()
	start := startTraced
	if !s.traced {
		start = startLaunched
	}
	stopRescue := s.killStuckStarts()
	// Go forks with vfork, so a child that agent code has stopped also blocks the guest's
	// thread. A garbage collection would wait for that thread. All other goroutines would wait for
	// the collection, including the one that kills the child. SetGCPercent(-1) completes a
	// collection that is under way and prevents new ones.
	percent := debug.SetGCPercent(-1)
	pid, err := start(path, p.args, attr, func(pid int) error { return s.limit(pid, sc.tag) })
	debug.SetGCPercent(percent)
	stopRescue()
	switch {
	case errors.Is(err, errKilledAtStart):
		return nil, errKilledAtStart
	case pid == 0:
		return nil, &startError{126, fmt.Errorf("%s: %w", p.args[0], err)}
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

// killStuckStarts kills children of the guest that were stopped before their exec, until stop
// is called. Such a child has no tag and still has the guest's arguments. It does not kill a
// child that is stopped at its exec, because that child waits for the guest. It recognizes it by
// its own arguments.
func (s *starter) killStuckStarts() (stop func()) {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(rescueInterval)
		defer tick.Stop()
		for self := os.Getpid(); ; {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			for _, p := range processes(s.scopes.isUntagged) {
				if p.parent == self && p.stopped && bytes.Equal(arguments(p.pid), arguments(self)) {
					p.signal(unix.SIGKILL)
				}
			}
		}
	})
	return func() {
		close(done)
		watch.Wait()
	}
}

// arguments returns the arguments of a process as /proc shows them, or nil if it has ended.
func arguments(pid int) []byte {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return raw
}

// startTraced starts a program with tracing, so that the kernel stops it at its exec. Then it
// calls limit, which tags and limits the program, and resumes it. If startTraced returns an error
// and a pid, the caller must kill that process.
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

// lookPath finds a program as a shell does: it resolves a name with a slash relative to dir,
// and searches any other name in the PATH of env.
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
