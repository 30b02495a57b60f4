package framing

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pipes is a real process as an env.Terminal.
type pipes struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	chunks chan []byte
	waited chan struct{}
	done   chan struct{}
}

func open(t *testing.T, args ...string) *pipes {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &pipes{cmd: cmd, in: in, chunks: make(chan []byte), waited: make(chan struct{}), done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.waited)
		w.Close()
	}()
	go func() {
		defer close(p.done)
		defer close(p.chunks)
		for {
			b := make([]byte, 1000)
			n, err := r.Read(b)
			if n > 0 {
				p.chunks <- b[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

func (p *pipes) Write(_ context.Context, b []byte) error { _, err := p.in.Write(b); return err }

func (p *pipes) Read(ctx context.Context, wait time.Duration) ([]byte, error) {
	select {
	case b, ok := <-p.chunks:
		if !ok {
			return nil, io.EOF
		}
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(wait):
		return nil, nil
	}
}

func (p *pipes) Interrupt(context.Context) error {
	return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT)
}

func (p *pipes) Close(context.Context) error {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	for range p.chunks {
	}
	<-p.done
	return nil
}

func (p *pipes) KillChildren(context.Context, uint64) error { return nil }
func (p *pipes) Mark(context.Context) (uint64, error)       { return 0, nil }

func (p *pipes) Exit() (int, bool) {
	select {
	case <-p.waited:
		return p.cmd.ProcessState.ExitCode(), true
	default:
		return 0, false
	}
}

// shell evaluates each line it reads and announces the status behind it.
const shell = `n=0; trap : INT
while IFS= read -r line || [ $? -gt 128 ]; do
  eval "$line"; s=$?; n=$((n+1))
  printf '\033]7717;%s;%d;%d;%s\007' NONCE $n $$ "$(printf '{"code":%d}' $s | base64 -w0)"
done`

const wait = 20 * time.Second

func TestConnExchanges(t *testing.T) {
	c := NewConn(open(t, "bash", "-c", shell), "NONCE", 0)
	for range 3 {
		r, err := c.Exchange(t.Context(), []byte("echo hällo; (exit 3)\n"), wait)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Text(); got != "hällo\n" || string(r.Frame) != `{"code":3}` {
			t.Errorf("got %q and %s", got, r.Frame)
		}
	}
	r, err := c.Exchange(t.Context(), []byte("echo bye; exit 4\n"), wait)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Exited || r.ExitCode != 4 || r.Text() != "bye\n" {
		t.Errorf("got %+v %q", r, r.Text())
	}
}

func TestConnTimeoutThenInterrupt(t *testing.T) {
	c := NewConn(open(t, "bash", "-c", shell), "NONCE", 0)
	r, err := c.Exchange(t.Context(), []byte("echo begun; sleep 1000\n"), 300*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if !r.TimedOut || r.Text() != "begun\n" {
		t.Fatalf("got %+v %q", r, r.Text())
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
	r, err = c.Exchange(t.Context(), []byte("echo next\n"), wait)
	if err != nil || r.Text() != "next\n" {
		t.Errorf("after a timeout: %q, %v", r.Text(), err)
	}
}

func TestConnCapsOutput(t *testing.T) {
	c := NewConn(open(t, "bash", "-c", shell), "NONCE", 1000)
	r, err := c.Exchange(t.Context(), []byte("head -c 3000000 /dev/zero | tr '\\0' x\n"), wait)
	if err != nil {
		t.Fatal(err)
	}
	if r.Total != 3000000 || len(r.Bytes) != 1000 || !strings.Contains(r.Text(), "cut ...]") {
		t.Errorf("kept %d of %d", len(r.Bytes), r.Total)
	}
}
