// Package cli holds the commands of tracesmith, one file each. Commands reach their
// process only through State, so that a test can run the whole program in-process.
// Data goes to Stdout, everything else to Stderr.
package cli

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/observe"
)

// State holds everything through which commands reach their process.
type State struct {
	Args    []string // without the program's name
	Environ []string // NAME=value
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time
	// Interrupts delivers the signals that end a command.
	Interrupts <-chan os.Signal
	// Hooks let tests and tracesmith-lab inject faults into a run.
	Hooks pipeline.Hooks
	// TTY reports whether Stderr is a terminal, StdinTTY whether Stdin is, StdoutTTY whether Stdout is.
	TTY, StdinTTY, StdoutTTY bool

	partial  bool        // another command runs this one and goes on, so it suggests no next command
	paging   atomic.Bool // a pager has the terminal and handles SIGINT
	drainer  drainer
	exitHook exitHook
}

// exitHook holds the function that runs before a forced exit.
type exitHook struct {
	sync.Mutex
	do func()
}

// SetExitHook sets the function that runs before the second signal ends the process.
// It must return quickly.
func (s *State) SetExitHook(do func()) {
	s.exitHook.Lock()
	defer s.exitHook.Unlock()
	s.exitHook.do = do
}

func (s *State) runExitHook() {
	s.exitHook.Lock()
	defer s.exitHook.Unlock()
	if s.exitHook.do != nil {
		s.exitHook.do()
	}
}

// drainer lets a command finish its work after the first signal.
type drainer struct {
	sync.Mutex
	text      string
	ch        chan struct{} // nil: the first signal cancels the command
	done      bool
	immediate []os.Signal // these cancel the command at once
}

// drain makes the first signal print text and close the returned channel, and the
// second one cancel the command. The signals in immediate cancel it at once.
func (s *State) drain(text string, immediate ...os.Signal) <-chan struct{} {
	s.drainer.Lock()
	defer s.drainer.Unlock()
	s.drainer.text, s.drainer.ch, s.drainer.immediate = text, make(chan struct{}), immediate
	return s.drainer.ch
}

// startDrain closes the channel that drain returned and returns drain's text. ok is false if
// sig must cancel the command instead: because the command cannot drain, is draining, or named
// sig as immediate.
func (s *State) startDrain(sig os.Signal) (text string, ok bool) {
	d := &s.drainer
	d.Lock()
	defer d.Unlock()
	if d.ch == nil || d.done || slices.Contains(d.immediate, sig) {
		return "", false
	}
	close(d.ch)
	d.done = true
	return d.text, true
}

// OSState returns the State of the current process. stop ends the delivery of signals to
// Interrupts.
func OSState() (s *State, stop func()) {
	ch := make(chan os.Signal, 4)
	for sig := range signalErrors {
		if sig != syscall.SIGHUP || !signal.Ignored(sig) { // nohup makes the process ignore it
			signal.Notify(ch, sig)
		}
	}
	return &State{
		Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: observe.TerminalOf(os.Stderr),
		Now: time.Now, Interrupts: ch, TTY: isTerminal(os.Stderr), StdinTTY: isTerminal(os.Stdin), StdoutTTY: isTerminal(os.Stdout),
	}, func() { signal.Stop(ch) }
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// warn prints a warning.
func (s *State) warn(text string) { fmt.Fprintf(s.Stderr, "warning: %s\n", text) }

// Getenv returns the value of a variable in Environ; the last entry wins.
func (s *State) Getenv(name string) string {
	value := ""
	for _, kv := range s.Environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// Host returns what components need from the process.
func (s *State) Host() wire.Host {
	return wire.Host{Getenv: s.Getenv, Environ: s.Environ, Warn: s.Stderr, Version: Version}
}

// Version is the release in the file VERSION. `make build` appends a plus sign and the commit
// to Version, and sets Commit. The program writes both into its records. In other builds,
// Commit is empty; commit() then returns the revision with which Go stamped the binary.
var (
	Version = "0.2.0"
	Commit  = ""
)

// commit returns the commit that the program was built from; "" if it is unknown.
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
