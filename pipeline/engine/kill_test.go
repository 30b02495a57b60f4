package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// The test binary starts itself as a child that embeds the engine and is
// killed from outside.
const childDir, childRole = "ENGINE_TEST_DIR", "ENGINE_TEST_ROLE"

// child does the work of the child and reports whether this process is one.
func child() bool {
	dir, role := os.Getenv(childDir), os.Getenv(childRole)
	if dir == "" {
		return false
	}
	if err := childMain(context.Background(), dir, role); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	return true
}

// childMain appends steps until it is killed, and prints each one that was acknowledged. With the
// role "hold" it only holds the lock of the directory.
func childMain(ctx context.Context, dir, role string) error {
	lock, err := LockDir(dir)
	if err != nil {
		return err
	}
	e, err := Open(ctx, Options{RunID: "r1", Lock: lock, MinFree: 1})
	if err != nil {
		return err
	}
	if role == "hold" {
		fmt.Println("locked")
		select {}
	}
	l, err := e.Next(ctx, "child")
	if err != nil {
		return err
	}
	log, old, err := e.OpenLog(ctx, l.ID)
	if err != nil {
		return err
	}
	fmt.Println("claimed", l.ID, l.Delivery)
	for i := len(old); ; i++ {
		if err := log.Append(ctx, "step", []byte(strconv.Itoa(i))); err != nil {
			return err
		}
		fmt.Println("step", i)
	}
}

func startChild(t *testing.T, dir, role string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childRole+"="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

// A process that is killed while it writes loses nothing that was acknowledged, and its job is
// available at once.
func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(t.Context(), Options{RunID: "r1", Lock: lock, MinFree: 1})
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, e, 1)
	if err := errors.Join(e.Close(), lock.Close()); err != nil {
		t.Fatal(err)
	}
	acked := -1
	const rounds = 6
	for round := 1; round <= rounds; round++ {
		cmd, out := startChild(t, dir, "work")
		for lines := 0; lines < 20*round && out.Scan(); lines++ {
			if n, ok := strings.CutPrefix(out.Text(), "step "); ok {
				acked, _ = strconv.Atoi(n)
			} else if !strings.HasPrefix(out.Text(), "claimed") {
				t.Fatal(out.Text())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for out.Scan() { // acknowledged before the signal took effect
			if n, ok := strings.CutPrefix(out.Text(), "step "); ok {
				acked, _ = strconv.Atoi(n)
			}
		}
		_ = cmd.Wait()
	}
	e = open(t, dir, nil)
	l := next(t, e)
	if l.Delivery != rounds+1 {
		t.Errorf("delivery %d, want %d", l.Delivery, rounds+1)
	}
	_, entries, err := e.OpenLog(t.Context(), l.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) <= acked {
		t.Fatalf("%d steps in the log, %d were acknowledged", len(entries), acked+1)
	}
	for i, entry := range entries {
		if string(entry.Data) != strconv.Itoa(i) {
			t.Fatalf("step %d reads %q", i, entry.Data)
		}
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, out := startChild(t, dir, "hold")
	if !out.Scan() || out.Text() != "locked" {
		t.Fatal(out.Text())
	}
	_, err := LockDir(dir)
	locked, ok := errors.AsType[*LockedError](err)
	if !ok || locked.ExitCode() != 9 || !strings.Contains(locked.Holder, fmt.Sprintf("pid %d on ", cmd.Process.Pid)) {
		t.Fatalf("%#v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	lock, err := LockDir(dir)
	if err != nil {
		t.Fatalf("the lock outlived its holder: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}

// A job that kills its process every time is given up after MaxDeliver*3 claims.
func TestJobThatKillsItsProcessIsGivenUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 13 {
		lock, err := LockDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		e, err := Open(t.Context(), Options{RunID: "r1", Lock: lock, MinFree: 1})
		if err != nil {
			t.Fatal(err)
		}
		enqueue(t, e, 1)
		if i < 12 {
			next(t, e).cancel(context.Canceled) // as after a crash: claimed, but not returned
		} else if r := record(t, e, "job00000"); r.State != Dead || r.Class != "process_died" {
			t.Errorf("after 12 deaths: %+v", r)
		}
		if err := errors.Join(e.Close(), lock.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// tornPart returns the first of two parts of an entry, which a crash in Append leaves behind.
func tornPart(e *Engine, id string) *nats.Msg {
	msg := nats.NewMsg(e.stepSubject(id))
	msg.Header.Set(headKind, "torn")
	msg.Header.Set(headPart, "0")
	msg.Header.Set(headParts, "2")
	msg.Data = []byte("half")
	return msg
}
