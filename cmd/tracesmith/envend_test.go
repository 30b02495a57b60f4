package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
)

// write writes text, and fails the test if that fails.
func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

// A signal during a step ends the step, whose answer says so, and then the program.
func TestSignalEndsARunningStep(t *testing.T) {
	_, config, label := sleepingRun(t)
	d := startEnv(t, "-c", config, "--task", label)
	d.must(`{"op":"reset"}`)
	write(t, d.in, `{"op":"step","tool":"bash","arguments":{"command":"sleep 600.417"}}`+"\n")
	wait(t, "the step runs", func() bool { return running("sleep 600.417") })
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(d.out)
	if err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(rest, &a); err != nil || a.OK || !strings.Contains(a.Error, "stopped by a signal") || len(a.Observations) > 0 {
		t.Errorf("%v: %s", err, rest)
	}
	_ = d.cmd.Wait()
	if code := d.cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit code %d", code)
	}
	wait(t, "nothing is left", func() bool { return sandboxes(label) == 0 && !running("sleep 600.417") })
}

// If a client closes the pipe that it reads answers from, the next answer closes the sandbox,
// and the process exits instead of dying of SIGPIPE.
func TestClosedOutputEndsTheEnvironment(t *testing.T) {
	_, config, label := sleepingRun(t)
	d := startEnv(t, "-c", config, "--task", label)
	d.must(`{"op":"reset"}`)
	if err := d.outPipe.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, d.in, `{"op":"step","tool":"bash","arguments":{"command":"echo lost"}}`+"\n")
	_ = d.cmd.Wait()
	if code := d.cmd.ProcessState.ExitCode(); code != 141 {
		t.Errorf("exit code %d", code)
	}
	wait(t, "no sandbox is left", func() bool { return sandboxes(label) == 0 })
}

// A signal during the search for sandboxes that earlier processes left behind is reported once,
// without the failure that it causes in the search.
func TestSignalBeforeTheFirstSandbox(t *testing.T) {
	daemon, err := net.Listen("tcp", "127.0.0.1:0") // a daemon that never answers
	if err != nil {
		t.Fatal(err)
	}
	defer daemon.Close()
	t.Setenv("DOCKER_HOST", "tcp://"+daemon.Addr().String())
	cmd, out := start(t, "env", "--task", "stockroom", "--sandbox", "docker")
	conn, err := daemon.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	want := "stopping: closing sandboxes (interrupt again to stop at once)\ntracesmith: interrupted\n"
	if code := cmd.ProcessState.ExitCode(); code != 130 || out.String() != want {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// A client may send operations before it has read the previous answers. Each operation is
// answered in order, including a last one without a newline or cut in half.
func TestOperationsMayBeSentAhead(t *testing.T) {
	for last, want := range map[string]string{`{"op":"patch","id":"last"}`: "", `{"op":"pat`: "not an operation"} {
		d := startEnv(t, "--task", "stockroom")
		write(t, d.in, strings.Join([]string{
			`{"op":"step","id":0}`, `{"op":"reset","id":1}`, `{"op":"reset","id":2}`,
			`{"op":"step","id":3,"tool":"bash","arguments":"{\"command\": \"echo here >made\"}"}`,
			`{"op":"reset","id":4,"soft":true}`, `{"op":"step","id":5,"tool":"bash","arguments":{"command":"cat made"}}`, last,
		}, "\n"))
		if err := d.in.Close(); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(d.out)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.cmd.Wait(); err != nil {
			t.Error(err)
		}
		lines := bytes.Split(bytes.TrimSpace(rest), []byte("\n"))
		if len(lines) != 7 {
			t.Fatalf("%d answers: %s", len(lines), rest)
		}
		for i, line := range lines {
			var a struct {
				OK          bool
				Error       string
				Observation string
				ID          any
			}
			if err := json.Unmarshal(line, &a); err != nil {
				t.Fatal(err)
			}
			switch {
			case i < 6 && a.ID != float64(i), i == 5 && a.Observation != "here\n", i == 6 && !strings.Contains(a.Error, want),
				a.OK != (i > 0 && (i < 6 || want == "")):
				t.Errorf("answer %d: %s", i, line)
			}
		}
	}
}
