package envtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

var commandChecks = []check{
	{name: "output and exit codes", fn: outputAndCodes},
	{name: "environment and directory", fn: environmentAndDir, adjust: func(s *env.SandboxSpec) { s.Env = []string{"GIVEN=1", "TZ=Asia/Tokyo"} }},
	{name: "standard input", fn: standardInput},
	{name: "arbitrary bytes", fn: arbitraryBytes},
	{name: "output is capped", fn: outputCapped},
	{name: "output longer than one message", fn: longOutput},
	{name: "concurrent calls", fn: concurrentCalls},
	{name: "cancelling", fn: cancelling},
	{name: "python resolves", fn: pythonResolves},
	{name: "limits are recorded", fn: limitsRecorded},
}

func outputAndCodes(t *testing.T, f *fixture) {
	for _, c := range []struct {
		args []string
		code int
		out  string
	}{
		{[]string{"echo", "a b", "c"}, 0, "a b c\n"},
		{[]string{"sh", "-c", "echo 1; echo 2 >&2; echo 3; exit 7"}, 7, "1\n2\n3\n"},
		{[]string{"sh", "-c", "kill -TERM $$"}, 143, ""},
		{[]string{"sh", "-c", "kill -KILL $$"}, 137, ""},
		{[]string{"sh", "-c", "exit 124"}, 124, ""},
		{[]string{"no-such-program"}, 127, "no-such-program: command not found\n"},
		{[]string{"/etc/passwd"}, 126, ""},
		{[]string{"./missing"}, 127, ""},
	} {
		r := f.run(t, env.Command{Args: c.args})
		if r.ExitCode != c.code || r.TimedOut || r.Limit != "" {
			t.Errorf("%q: exit %d, timed out %v, limit %q; want exit %d", c.args, r.ExitCode, r.TimedOut, r.Limit, c.code)
		}
		if c.out != "" && string(r.Output) != c.out {
			t.Errorf("%q printed %q, want %q", c.args, r.Output, c.out)
		}
		if r.Total != int64(len(r.Output)) || r.Head != len(r.Output) {
			t.Errorf("%q: total %d, head %d of %d bytes", c.args, r.Total, r.Head, len(r.Output))
		}
	}
	r := f.run(t, env.Command{Args: []string{"sleep", "0.2"}})
	if r.Wall < 200*time.Millisecond {
		t.Errorf("sleep 0.2 took %v by the guest's clock", r.Wall)
	}
	r = f.run(t, env.Command{Args: []string{"pwd"}, Dir: "/no/such/dir"})
	if r.ExitCode != 126 || !strings.Contains(string(r.Output), "/no/such/dir") {
		t.Errorf("missing directory: exit %d, %q", r.ExitCode, r.Output)
	}
}

func environmentAndDir(t *testing.T, f *fixture) {
	f.sh(t, "mkdir -p sub/dir")
	r := f.run(t, env.Command{Args: []string{"sh", "-c", "pwd; env"}, Dir: "sub/dir", Env: []string{"MINE=2", "GIVEN=3"}})
	out := string(r.Output)
	for _, want := range []string{"/sub/dir\n", "MINE=2\n", "GIVEN=3\n", "TZ=Asia/Tokyo\n", "PYTHONHASHSEED=0\n", "NO_COLOR=1\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %q", want, out)
		}
	}
	if strings.Contains(out, secretVariable) || strings.Contains(out, "GIVEN=1") {
		t.Errorf("a variable of the host or an overridden variable is visible: %q", out)
	}
}

func standardInput(t *testing.T, f *fixture) {
	if r := f.run(t, env.Command{Args: []string{"cat"}}); len(r.Output) != 0 || r.ExitCode != 0 {
		t.Errorf("cat without input: %q, exit %d", r.Output, r.ExitCode)
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 200_000) // 3.2 MB: several messages
	r := f.run(t, env.Command{Args: []string{"cat"}, Stdin: big, MaxOutput: 8 << 20})
	if !bytes.Equal(r.Output, big) {
		t.Errorf("cat returned %d bytes of %d", len(r.Output), len(big))
	}
	r = f.run(t, env.Command{Args: []string{"head", "-c", "3"}, Stdin: big})
	if string(r.Output) != "012" || r.ExitCode != 0 {
		t.Errorf("head: %q, exit %d", r.Output, r.ExitCode)
	}
}

func arbitraryBytes(t *testing.T, f *fixture) {
	want := "a\x00b\xff\xfe\x1b]633;\x07\r\n\xc3("
	r := f.run(t, env.Command{Args: []string{"cat"}, Stdin: []byte(want)})
	if string(r.Output) != want {
		t.Errorf("got %q, want %q", r.Output, want)
	}
	r = f.run(t, env.Command{Args: []string{"printf", "%s", "\xff\xfe"}})
	if string(r.Output) != "\xff\xfe" {
		t.Errorf("argument arrived as %q", r.Output)
	}
}

func outputCapped(t *testing.T, f *fixture) {
	const total = 100 << 20
	r := f.python(t, patience, fmt.Sprintf(`
import os
piece = b"x" * (1 << 20)
os.write(1, b"HEAD")
for i in range(%d >> 20):
    n = 0
    while n < len(piece):
        n += os.write(1, piece[n:])
os.write(1, b"TAIL")
`, total))
	if r.Total != total+8 || r.ExitCode != 0 {
		t.Errorf("total %d, exit %d; want %d", r.Total, r.ExitCode, total+8)
	}
	if len(r.Output) != env.DefaultMaxOutput || r.Head != env.DefaultMaxOutput/2 {
		t.Errorf("kept %d bytes, head %d", len(r.Output), r.Head)
	}
	if !bytes.HasPrefix(r.Output, []byte("HEADx")) || !bytes.HasSuffix(r.Output, []byte("xTAIL")) {
		t.Errorf("ends are %q and %q", r.Output[:8], r.Output[len(r.Output)-8:])
	}
	r = f.run(t, env.Command{Args: []string{"printf", "0123456789"}, MaxOutput: 5})
	if string(r.Output) != "01789" || r.Head != 2 || r.Total != 10 {
		t.Errorf("cap 5 kept %q, head %d, total %d", r.Output, r.Head, r.Total)
	}
}

func longOutput(t *testing.T, f *fixture) {
	r := f.python(t, time.Minute, "print('\\n'.join(map(str, range(10))))")
	if r.Total != 20 {
		t.Fatalf("total %d", r.Total)
	}
	const lines = 600_000
	cmd := env.Command{Args: []string{"seq", fmt.Sprint(lines)}, MaxOutput: 32 << 20}
	r = f.run(t, cmd)
	got := bytes.Split(bytes.TrimSpace(r.Output), []byte("\n"))
	if len(got) != lines || string(got[lines-1]) != fmt.Sprint(lines) || r.Total != int64(len(r.Output)) {
		t.Errorf("%d lines of %d, total %d of %d", len(got), lines, r.Total, len(r.Output))
	}
}

func concurrentCalls(t *testing.T, f *fixture) {
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			name := fmt.Sprintf("file-%d", i)
			if err := f.WriteFile(t.Context(), name, []byte(name), 0); err != nil {
				t.Error(err)
				return
			}
			r, err := f.Run(t.Context(), env.Command{Args: []string{"cat", name}})
			if err != nil || string(r.Output) != name {
				t.Errorf("%s: %q, %+v, %v", name, r.Output, r, err)
			}
		})
	}
	wg.Wait()
}

func cancelling(t *testing.T, f *fixture) {
	ctx, cancel := context.WithCancel(t.Context())
	term, err := f.Open(t.Context(), env.TerminalSpec{Args: []string{"sh", "-c", "while [ ! -e started ]; do sleep 0.01; done; echo go"}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := f.Run(ctx, env.Command{Args: []string{"sh", "-c", "touch started; sleep " + nap1}})
		done <- err
	}()
	readUntil(t, term, "go")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled run ended with %v", err)
	}
	f.waitGone(t, nap1)
}

func pythonResolves(t *testing.T, f *fixture) {
	for _, name := range []string{"python", "python3"} {
		r := f.run(t, env.Command{Args: []string{name, "-c", "import sys; print(sys.version.split()[0])"}})
		if got := strings.TrimSpace(string(r.Output)); r.ExitCode != 0 || got != f.Key().Python {
			t.Errorf("%s is %q (exit %d), the key says %q", name, got, r.ExitCode, f.Key().Python)
		}
	}
}
