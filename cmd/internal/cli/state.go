// Package cli holds the commands of tracesmith, one file each. Everything a
// command touches of its process comes through State, so that a test runs the
// whole program in-process. Data goes to Stdout, everything else to Stderr.
package cli

import (
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/pipeline"
)

// State is the process as the commands see it.
type State struct {
	Args    []string // without the program's name
	Environ []string // NAME=value
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time
	// Interrupts delivers the signals that end a command.
	Interrupts <-chan os.Signal
	// Hooks let tests and the lab disturb a run.
	Hooks pipeline.Hooks
	// TTY tells whether Stderr is a terminal, Typed whether Stdin is.
	TTY, Typed bool

	draining drains
	exit     exitHook
}

// exitHook runs before a forced exit.
type exitHook struct {
	sync.Mutex
	do func()
}

// SetExitHook sets what runs when the second signal ends the process. It must not take long.
func (s *State) SetExitHook(do func()) {
	s.exit.Lock()
	defer s.exit.Unlock()
	s.exit.do = do
}

// runExitHook runs what SetExitHook has set.
func (s *State) runExitHook() {
	s.exit.Lock()
	defer s.exit.Unlock()
	if s.exit.do != nil {
		s.exit.do()
	}
}

// drains is what a command does at the first signal instead of being cancelled.
type drains struct {
	sync.Mutex
	text string
	ch   chan struct{} // nil: it is cancelled
	done bool
	keen []os.Signal // that cancel at once
}

// drain has the first signal close the channel, with a word of what happens then,
// and the second one cancel the command; keen signals cancel at once.
func (s *State) drain(text string, keen ...os.Signal) <-chan struct{} {
	s.draining.Lock()
	defer s.draining.Unlock()
	s.draining.text, s.draining.ch, s.draining.keen = text, make(chan struct{}), keen
	return s.draining.ch
}

// drained drains the command, if it can be and was not.
func (s *State) drained(sig os.Signal) (text string, ok bool) {
	d := &s.draining
	d.Lock()
	defer d.Unlock()
	if d.ch == nil || d.done || slices.Contains(d.keen, sig) {
		return "", false
	}
	close(d.ch)
	d.done = true
	return d.text, true
}

// OSState is the State of the real process; stop ends its signal delivery.
func OSState() (s *State, stop func()) {
	ch := make(chan os.Signal, 4)
	for sig := range stoppedBy {
		if sig != syscall.SIGHUP || !signal.Ignored(sig) { // nohup ignores it, and so do we then
			signal.Notify(ch, sig)
		}
	}
	return &State{
		Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Now: time.Now, Interrupts: ch, TTY: isTerminal(os.Stderr), Typed: isTerminal(os.Stdin),
	}, func() { signal.Stop(ch) }
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// Getenv looks a variable up in the State's environment; the last one wins.
func (s *State) Getenv(name string) string {
	value := ""
	for _, kv := range s.Environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// host is what components take from the process.
func (s *State) Host() wire.Host {
	return wire.Host{Getenv: s.Getenv, Environ: s.Environ, Warn: s.Stderr, Version: Version}
}

// Version is the release in the file VERSION, with the commit of the build behind a
// plus sign; data that this program writes names it. `make build` sets Version and
// Commit; in other builds Commit comes from the VCS stamp, if there is one.
var (
	Version = "0.2.0"
	Commit  = ""
)

func commit() string {
	if Commit != "" {
		return Commit
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
