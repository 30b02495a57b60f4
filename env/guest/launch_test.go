package guest

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// If the kernel forbids tracing, the guest starts programs with the launcher. They get the
// same limits, arguments, environment and exit codes as with tracing, and are killed when
// their time is up.
func TestProgramsStartWithoutTracing(t *testing.T) {
	s := newServer(tagKey{}, 0)
	s.starter.traced = false
	s.configure(&guestpb.HelloRequest{Workdir: []byte(t.TempDir()), Env: [][]byte{[]byte("PATH=" + os.Getenv("PATH"))}, OpenFiles: 100})
	childEnded := make(chan os.Signal, 1)
	signal.Notify(childEnded, unix.SIGCHLD)
	reaperDone := make(chan struct{})
	go func() {
		defer close(reaperDone)
		s.killer.reaper.run(childEnded)
	}()
	defer func() {
		signal.Stop(childEnded)
		close(childEnded)
		<-reaperDone
	}()
	run := func(timeout time.Duration, env string, args ...string) *guestpb.RunResponse {
		t.Helper()
		r := &guestpb.RunRequest{TimeoutNs: int64(timeout), MaxOutput: 1000, Env: [][]byte{[]byte(env)}}
		for _, a := range args {
			r.Args = append(r.Args, []byte(a))
		}
		resp, err := s.Run(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	r := run(20*time.Second, "GIVEN=1", "sh", "-c", `echo $0 $1 $GIVEN; ulimit -n; ulimit -c; exit 7`, "zero", "one")
	if want := "zero one 1\n100\n0\n"; string(r.Output) != want || r.ExitCode != 7 {
		t.Errorf("got %q, exit code %d; want %q and 7", r.Output, r.ExitCode, want)
	}
	if r := run(20*time.Second, "A=", "/etc/passwd"); r.ExitCode != 126 || !strings.Contains(string(r.Output), "permission denied") {
		t.Errorf("a file that is not executable: %q, exit code %d", r.Output, r.ExitCode)
	}
	if r := run(20*time.Second, "A=", "no-such-program"); r.ExitCode != 127 {
		t.Errorf("a missing program: exit code %d", r.ExitCode)
	}
	if r := run(300*time.Millisecond, "A=", "sh", "-c", "trap '' TERM; (setsid sleep 100 &); sleep 100"); !r.TimedOut || r.ExitCode != 137 {
		t.Errorf("a program that exceeds its time limit: %+v", r)
	}
}
