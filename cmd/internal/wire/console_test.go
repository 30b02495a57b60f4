package wire

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// Input that is not a terminal is read line by line, over all episodes.
func TestConsoleReadsLines(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	c := NewConsole(strings.NewReader("one\r\n\n"+long+"\nlast"), io.Discard)
	for _, want := range []string{"one", "", long, "last"} {
		if got, err := c.ReadLine(t.Context(), "> ", nil); err != nil || got != want {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if _, err := c.ReadLine(t.Context(), "> ", nil); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	c = NewConsole(strings.NewReader(strings.Repeat("y", maxLine+2)), io.Discard)
	if _, err := c.ReadLine(t.Context(), "> ", nil); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a line longer than maxLine was read: %v", err)
	}
}

// ReadLine returns when the episode ends.
func TestConsoleStopsWaiting(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	errGone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() {
		_, err := NewConsole(r, io.Discard).ReadLine(ctx, "> ", nil)
		done <- err
	}()
	cancel(errGone)
	if err := <-done; !errors.Is(err, errGone) {
		t.Error(err)
	}
}

func TestConsoleCompletesTheSharedPrefix(t *testing.T) {
	for want, options := range map[string][]string{"": nil, "view ": {"view "}, "l": {"line=", "levels="}, "pa": {"path=", "part="}} {
		if got := commonPrefix(options); got != want {
			t.Errorf("%v: %q", options, got)
		}
	}
}
