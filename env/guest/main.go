package guest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// ServeArg is the first argument that makes an executable a guest.
const ServeArg = "tracesmith-guest-serve"

// MainIfGuest never returns when the process was started as a guest. Every
// executable that starts sandboxes calls it first in main, test binaries in
// TestMain, because where no guest binary is embedded they are their own guest.
func MainIfGuest() {
	if len(os.Args) > 1 && (os.Args[1] == ServeArg || os.Args[1] == StageArg || os.Args[1] == launchArg) {
		Main()
	}
}

// Main serves the host on standard input and output, or on the socket it is told
// to dial, until the stream ends, then ends everything the guest started and exits.
func Main() {
	if len(os.Args) > 1 && os.Args[1] == StageArg {
		fmt.Fprintln(os.Stderr, "stage:", stage(os.Args[2:]))
		exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == launchArg {
		launch(os.Args[2:])
	}
	if len(os.Args) < 2 || os.Args[1] != ServeArg {
		fmt.Fprintf(os.Stderr, "%s serves inside sandboxes and is started by tracesmith only\n", os.Args[0])
		exit(2)
	}
	if err := serve(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		exit(1)
	}
	exit(0)
}

// exit is os.Exit without what a program built for tests does before: the race
// detector waits a second there, and tests start guests by the thousand.
func exit(code int) { syscall.Exit(code) }

func serve(args []string) error {
	flags := flag.NewFlagSet(ServeArg, flag.ContinueOnError)
	drop := flags.Int("drop", 0, "uid and gid to become before serving")
	own := flags.String("own", "", "directories to hand to that uid, separated by colons")
	tags := flags.Uint64("tags", 0, "the first mark of programs, by which Bury finds them; 0: one of its own")
	pinned := flags.Bool("pinned", false, "programs may not choose other processors than the ones they start with")
	flags.String("owner", "", "the host process, for cleaning up after it")
	flags.String("label", "", "what the sandbox is for, for humans")
	socket := flags.String("dial", "", "serve on this Unix socket instead of standard input and output")
	inherit := flags.String("inherit", "", "programs get this process's environment, with this directory first in its PATH")
	relayTo := flags.String("relay", "", "do not serve: listen there and pass bytes between the guest and standard input and output")
	holdFor := flags.Duration("hold", 0, "do not serve: stay while others run here, and this long for the first")
	reachOut := flags.Bool("reach", false, "do not serve: see whether the cluster's API server can be reached from here")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case *relayTo != "":
		return relay(*relayTo)
	case *holdFor != 0:
		return hold(*holdFor)
	case *reachOut:
		return reach()
	}
	if *drop != 0 {
		return become(*drop, strings.Split(*own, ":"))
	}
	dialTo, inheritBin := strings.Clone(*socket), strings.Clone(*inherit) // flags are parts of the arguments
	if os.Getpid() == 1 {
		forgetArguments()
	}
	conn, err := takeStdio()
	if err != nil {
		return fmt.Errorf("taking over standard input and output: %w", err)
	}
	if dialTo != "" {
		if conn, err = dial(dialTo); err != nil {
			return err
		}
	}
	key := newTagKey()
	if err := harden(key); err != nil {
		return err
	}
	s := newServer(key, *tags)
	if s.scopes.alone {
		if err := denyCalls(*pinned, key); err != nil {
			return fmt.Errorf("denying system calls: %w", err)
		}
	}
	if inheritBin != "" {
		s.inherited = inherited(os.Environ(), inheritBin)
	}
	childEnded := make(chan os.Signal, 1)
	signal.Notify(childEnded, unix.SIGCHLD)
	go s.reaper.run(childEnded)
	go s.watch()
	rpc, err := ttrpc.NewServer()
	if err != nil {
		return err
	}
	guestpb.RegisterGuestService(rpc, s)
	// Serve returns when the stream has ended, because the listener ends with it.
	if err := rpc.Serve(context.Background(), &onlyOnce{conn: conn}); !errors.Is(err, io.EOF) {
		return err
	}
	if !s.scopes.alone { // the kernel does it for the first process of a namespace
		if !s.kill(s.scopes.ours, func(process) bool { return false }) {
			return errors.New("some programs of the sandbox still run")
		}
	}
	return nil
}

// forgetArguments clears what the command line says of the host: programs can
// read it.
func forgetArguments() {
	for _, arg := range os.Args[2:] {
		clear(unsafe.Slice(unsafe.StringData(arg), len(arg))) // the process's own memory, not a constant
	}
	os.Args = os.Args[:2]
}

// harden keeps programs of the same user from tracing, reading or signalling the
// guest, and makes orphans its children.
func harden(key tagKey) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("closing the guest's memory: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopting orphans: %w", err)
	}
	// Descriptors that leaked into the host's children must not reach programs.
	if unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11
		if err := closeEachOnExec(); err != nil {
			return fmt.Errorf("closing inherited descriptors to programs: %w", err)
		}
	}
	if os.Getpid() == 1 {
		if err := filterSyscalls(key); err != nil {
			return fmt.Errorf("filtering system calls: %w", err)
		}
	}
	unix.Umask(0o022)
	// Signals are received and dropped: unread channel, non-blocking sender.
	signal.Notify(make(chan os.Signal, 1))
	// Two signals the runtime leaves to the C library. That their default action
	// does not harm the first process of a namespace holds only while its first
	// thread does not block them, as the runtime does for moments.
	for _, sig := range []uintptr{32, 34} {
		if err := ignoreSignal(sig); err != nil {
			return fmt.Errorf("ignoring signal %d: %w", sig, err)
		}
	}
	warmThreads()
	return nil
}

// takeStdio moves the stream away from descriptors 0 and 1, where a child would
// inherit it, and leaves /dev/null there.
func takeStdio() (*hostConn, error) {
	var moved [2]*os.File
	for fd := range moved {
		high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 64)
		if err != nil {
			return nil, err
		}
		if err := unix.SetNonblock(high, true); err != nil {
			return nil, err
		}
		moved[fd] = os.NewFile(uintptr(high), "host")
	}
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	for fd := range moved {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return nil, err
		}
	}
	return &hostConn{Conn: stdio{in: moved[0], out: moved[1]}, ended: make(chan struct{})}, unix.Close(null)
}

// onlyOnce is a listener with one connection; its next Accept waits for the end.
type onlyOnce struct {
	conn  *hostConn
	taken bool
}

func (l *onlyOnce) Accept() (net.Conn, error) {
	if l.taken {
		<-l.conn.ended
		return nil, io.EOF
	}
	l.taken = true
	return l.conn, nil
}

func (l *onlyOnce) Close() error   { return nil }
func (l *onlyOnce) Addr() net.Addr { return &net.UnixAddr{Name: "host", Net: "stdio"} }

// closeEachOnExec closes every open descriptor from 3 on to programs.
func closeEachOnExec() error {
	open, err := os.ReadDir("/proc/self/fd")
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return err
}
