package guest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// ServeArg is the first argument that makes an executable a guest.
const ServeArg = "tracesmith-guest-serve"

// MainIfGuest runs the guest and does not return if the process was started as a guest.
// Otherwise it returns at once. Every executable that starts sandboxes must call it first in main,
// and test binaries in TestMain: if no guest binary is embedded, the executable itself is started
// as the guest.
func MainIfGuest() {
	if len(os.Args) > 1 && (os.Args[1] == ServeArg || os.Args[1] == StageArg || os.Args[1] == launchArg) {
		Main()
	}
}

// Main runs the guest in the mode that the first argument selects, and never returns. With ServeArg,
// it serves the host over standard input and output, or over the socket that the arguments name,
// until the stream ends; it then kills everything that the guest started, and exits. Some flags
// make it do another task instead of serving (see serve). With StageArg or launchArg, it becomes
// another program (see stage and launch).
func Main() {
	if len(os.Args) > 1 && os.Args[1] == StageArg {
		fmt.Fprintln(os.Stderr, "stage:", stage(os.Args[2:]))
		exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == launchArg {
		launch(os.Args[2:])
	}
	if len(os.Args) < 2 || os.Args[1] != ServeArg {
		fmt.Fprintf(os.Stderr, "%s runs inside sandboxes; only tracesmith starts it\n", os.Args[0])
		exit(2)
	}
	if err := serve(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		exit(1)
	}
	exit(0)
}

// exit is os.Exit without the hooks of the race detector, which waits for a second: tests
// start guests by the thousand.
func exit(code int) { syscall.Exit(code) }

// serve serves the host until the stream ends, or does the other task that a flag names. With
// -drop, it starts the guest again without privileges.
func serve(args []string) error {
	flags := flag.NewFlagSet(ServeArg, flag.ContinueOnError)
	drop := flags.Int("drop", 0, "uid and gid to become before serving")
	ownDirs := flags.String("own", "", "directories to hand over to that uid, separated by colons")
	tags := flags.Uint64("tags", 0,
		"the tag of the first program (see scope), by which KillPrograms finds all programs after the guest has ended; 0 = a random one")
	pinned := flags.Bool("pinned", false, "programs may run only on the processors that they start on")
	flags.String("owner", "", "the host process, for cleaning up after it")
	flags.String("label", "", "a description of the sandbox for people")
	socket := flags.String("dial", "", "serve on this Unix socket instead of standard input and output")
	inherit := flags.String("inherit", "", "programs get the guest's environment, with this directory first in its PATH")
	relayTo := flags.String("relay", "", "do not serve: listen on this socket and copy bytes between the guest and standard input and output")
	holdFor := flags.Duration("hold", 0, "do not serve: run as long as other processes run here; wait this long for the first one")
	checkServer := flags.Bool("reach", false, "do not serve: check whether the cluster's API server can be reached from here")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case *relayTo != "":
		return relay(*relayTo)
	case *holdFor != 0:
		return waitForRelays(*holdFor)
	case *checkServer:
		return checkAPIServer()
	}
	if *drop != 0 {
		return dropPrivileges(*drop, strings.Split(*ownDirs, ":"))
	}
	dialTo, inheritBin := strings.Clone(*socket), strings.Clone(*inherit) // forgetArguments clears the originals
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
	key := newTagKey() // a secret, without which programs cannot change their tags
	if err := harden(key, *pinned); err != nil {
		return err
	}
	s := newServer(key, *tags)
	if inheritBin != "" {
		s.starter.inherited = inheritedEnviron(os.Environ(), inheritBin)
	}
	childEnded := make(chan os.Signal, 1)
	signal.Notify(childEnded, unix.SIGCHLD)
	go s.killer.reaper.run(childEnded)
	go func() {
		<-s.ready
		s.watchdog.run()
	}()
	rpc, err := ttrpc.NewServer()
	if err != nil {
		return err
	}
	guestpb.RegisterGuestService(rpc, s)
	// Serve returns when the stream has ended, because the listener ends with it.
	if err := rpc.Serve(context.Background(), &singleConnListener{conn: conn}); !errors.Is(err, io.EOF) {
		return err
	}
	if scopes := s.killer.scopes; scopes.isInit {
		killNamespace()
	} else if !s.killer.kill(scopes.hasTag, spareNone) {
		return errors.New("some programs of the sandbox could not be killed and still run")
	}
	return nil
}

// killNamespace kills all other processes of the namespace whose first process the guest is, and waits for
// them. The kernel would kill them when the guest ends, but their CPU time would be lost.
func killNamespace() {
	_ = unix.Kill(-1, unix.SIGKILL)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && err != unix.EINTR { // ECHILD: all have ended
				return
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(sweepTimeout): // one is stuck in the kernel
	}
}
