package framing

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/drivers/local"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/internal/envtest"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	goleak.VerifyTestMain(m)
}

// open starts a program in a new sandbox.
func open(t *testing.T, args ...string) env.Terminal {
	t.Helper()
	sb := envtest.Sandbox(t, "local", env.SandboxSpec{Label: "framing-test"})
	term, err := sb.Open(t.Context(), env.TerminalSpec{Args: args})
	if err != nil {
		t.Fatal(err)
	}
	return term
}

// shell is a script that reads pairs of lines, a nonce and a command. It evaluates each command, and
// then sends a frame with the nonce and the exit code. A status of read above 128 means that a signal
// interrupted it, which must not end the script as the end of the input does.
const shell = `trap : INT
while IFS= read -r nonce && IFS= read -r line || [ $? -gt 128 ]; do
  eval "$line"; s=$?
  printf '\033]7717;%s;1;%d;1;1;%s\007' "$nonce" $$ "$(printf '{"code":%d}' $s | base64 -w0)"
done`

// input returns the lines that the shell reads for one command.
func input(c *Conn, command string) []byte { return []byte(c.Expect() + "\n" + command + "\n") }

const wait = 2 * time.Minute

func TestConnExchanges(t *testing.T) {
	c := NewConn(open(t, "bash", "-c", shell), 0)
	for range 3 {
		r, err := c.Exchange(t.Context(), input(c, "echo hällo; (exit 3)"), wait)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Text(); got != "hällo\n" || string(r.Frame) != `{"code":3}` {
			t.Errorf("got %q and %s", got, r.Frame)
		}
	}
	r, err := c.Exchange(t.Context(), input(c, "echo bye; exit 4"), wait)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Exited || r.ExitCode != 4 || r.Text() != "bye\n" {
		t.Errorf("got %+v %q", r, r.Text())
	}
}

func TestConnTimeoutThenInterrupt(t *testing.T) {
	c := NewConn(open(t, "bash", "-c", shell), 0)
	const pause = 300 * time.Millisecond
	r, err := c.Exchange(t.Context(), input(c, "sh -c 'echo begun; exec sleep 1000'"), pause)
	output := r.Text()
	for end := time.Now().Add(wait); err == nil && r.TimedOut && output == "" && time.Now().Before(end); {
		r, err = c.Await(t.Context(), pause) // until the command has begun, which can take a while on a busy machine
		output += r.Text()
	}
	if err != nil {
		t.Fatal(err)
	}
	if !r.TimedOut || output != "begun\n" {
		t.Fatalf("got %+v %q", r, output)
	}
	if _, err := c.Exchange(t.Context(), []byte("echo no\n"), wait); !errors.Is(err, ErrBusy) {
		t.Fatalf("got %v, want ErrBusy", err)
	}
	if err := c.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err = c.Await(t.Context(), wait); err != nil || string(r.Frame) != `{"code":130}` {
		t.Fatalf("got %+v, %v", r, err)
	}
	r, err = c.Exchange(t.Context(), input(c, "echo next"), wait)
	if err != nil || r.Text() != "next\n" {
		t.Errorf("after a timeout: %q, %v", r.Text(), err)
	}
}

// delayedTerminal is a terminal whose Write succeeds but returns only after its deadline, as if
// this process had been stopped meanwhile.
type delayedTerminal struct{ env.Terminal }

func (h delayedTerminal) Write(ctx context.Context, p []byte) error {
	err := h.Terminal.Write(context.WithoutCancel(ctx), p)
	<-ctx.Done()
	return err
}

func TestConnReadsOutputThatArrivedWhileSuspended(t *testing.T) {
	term := open(t, "bash", "-c", shell)
	c := NewConn(delayedTerminal{term}, 0)
	r, err := c.Exchange(t.Context(), input(c, "printf '%3000s'; (exit 3)"), 5*time.Second)
	if err != nil || string(r.Frame) != `{"code":3}` || r.Total != 3000 {
		t.Errorf("%d bytes and %q, %v, timed out: %v", r.Total, r.Frame, err, r.TimedOut)
	}
}

func TestConnCapsOutput(t *testing.T) {
	c := NewConn(open(t, "bash", "-c", shell), 1000)
	r, err := c.Exchange(t.Context(), input(c, "head -c 3000000 /dev/zero | tr '\\0' x"), wait)
	if err != nil {
		t.Fatal(err)
	}
	if r.Total != 3000000 || len(r.Bytes) != 1000 || !strings.Contains(r.Text(), "cut ...]") {
		t.Errorf("kept %d of %d", len(r.Bytes), r.Total)
	}
}
