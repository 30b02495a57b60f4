package drivers

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest"
)

// GuestArgs returns the arguments that start a guest for this process. label is the label of the sandbox, and more are
// further flags.
func GuestArgs(label string, more ...string) []string {
	return append([]string{guest.ServeArg, "-owner", Self().String(), "-label", label}, more...)
}

// Orphans finds the guests on this machine whose owner is dead. If ctx ends, it returns the error of ctx with the
// guests that it has found so far.
func Orphans(ctx context.Context) ([]env.Leftover, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var out []env.Leftover
	for _, line := range lines {
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		raw, err := os.ReadFile(line)
		if err != nil {
			continue // the process has ended or belongs to another user
		}
		args := strings.Split(string(raw), "\x00")
		// A guest in its own pid namespace has cleared its command line. Its parent bwrap has the same arguments, so
		// this finds the bwrap instead.
		at := slices.Index(args, guest.ServeArg)
		if at < 1 || len(args) < at+5 || args[at+1] != "-owner" {
			continue
		}
		o, ok := ParseOwner(args[at+2])
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line)))
		if !ok || err != nil || !o.Dead() {
			continue
		}
		start, alive := startTime(pid)
		if !alive {
			continue
		}
		out = append(out, env.Leftover{
			Kind: "process", Name: strconv.Itoa(pid), What: args[at+4], Since: startedAt(start),
			// If pid is a bwrap, its child is the guest, and the kernel ends the rest of the namespace with it.
			Remove: func(context.Context) error { return errors.Join(killChildren(pid), killProcess(pid, start)) },
		})
	}
	return out, nil
}

// killChildren kills the children of a process, but not their descendants.
func killChildren(parent int) error {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		raw, readErr := os.ReadFile(file)
		if readErr != nil {
			continue // the process has ended
		}
		f := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
		pid, pidErr := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if len(f) < 20 || pidErr != nil || string(f[1]) != strconv.Itoa(parent) {
			continue
		}
		if start, alive := startTime(pid); alive {
			err = errors.Join(err, killProcess(pid, start))
		}
	}
	return err
}

// killProcess kills a process, unless it has ended and another process has its pid.
func killProcess(pid int, start int64) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return ignoreGone(err)
	}
	defer unix.Close(fd)
	if now, alive := startTime(pid); !alive || now != start {
		return nil
	}
	return ignoreGone(unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0))
}

func ignoreGone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// startedAt returns the time that is a number of clock ticks (of 10 ms) after boot.
func startedAt(ticks int64) time.Time {
	var up unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(ticks)*10*time.Millisecond - time.Duration(up.Nano()))
}
