package drivers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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

// An owner is the process that made a sandbox, named so that no later process
// can be mistaken for it and no process of another place for a dead one.
type owner struct {
	host, boot, space string // machine, its boot, pid namespace
	pid, start        int64
}

func self() owner {
	o := here()
	pid := os.Getpid()
	o.pid = int64(pid)
	o.start, _ = startTime(pid)
	return o
}

// here is an owner without a process.
func here() owner {
	name, _ := os.Hostname()
	sum := sha256.Sum256([]byte(firstLine("/etc/machine-id") + "/" + name))
	space, _ := os.Readlink("/proc/self/ns/pid")
	return owner{
		host:  hex.EncodeToString(sum[:6]),
		boot:  strings.ReplaceAll(firstLine("/proc/sys/kernel/random/boot_id"), "-", ""),
		space: strings.Trim(space, "pid:[]"),
	}
}

func (o owner) String() string {
	return fmt.Sprintf("%s.%s.%s.%d.%d", o.host, o.boot, o.space, o.pid, o.start)
}

func parseOwner(s string) (owner, bool) {
	f := strings.Split(s, ".")
	if len(f) != 5 {
		return owner{}, false
	}
	pid, err1 := strconv.ParseInt(f[3], 10, 32)
	start, err2 := strconv.ParseInt(f[4], 10, 64)
	return owner{f[0], f[1], f[2], pid, start}, err1 == nil && err2 == nil
}

// dead is true only where the owner ran on this machine and is gone for certain.
func (o owner) dead() bool {
	at := here()
	if o.host != at.host || at.boot == "" {
		return false
	}
	if o.boot != at.boot {
		return true
	}
	if o.space != at.space {
		return false // not ours to see
	}
	start, alive := startTime(int(o.pid))
	return !alive || start != o.start
}

func firstLine(file string) string {
	raw, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	return strings.TrimSpace(line)
}

// startTime is field 22 of /proc/PID/stat, in clock ticks since boot.
func startTime(pid int) (ticks int64, alive bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	f := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(f) < 20 {
		return 0, false
	}
	ticks, err = strconv.ParseInt(string(f[19]), 10, 64)
	return ticks, err == nil
}

// guestArgs is the command line of a guest.
func guestArgs(label string, more ...string) []string {
	return append([]string{guest.ServeArg, "-owner", self().String(), "-label", label}, more...)
}

// orphans finds guests whose owner is dead. When they are killed the kernel takes
// the rest of their sandbox with them.
func orphans(ctx context.Context) ([]env.Leftover, error) {
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
			continue // gone, or not ours to see
		}
		args := strings.Split(string(raw), "\x00")
		// A guest by itself, or behind the bwrap that started it: one in a
		// namespace of its own has cleared its command line.
		at := slices.Index(args, guest.ServeArg)
		if at < 1 || len(args) < at+5 || args[at+1] != "-owner" {
			continue
		}
		o, ok := parseOwner(args[at+2])
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line)))
		if !ok || err != nil || !o.dead() {
			continue
		}
		start, alive := startTime(pid)
		if !alive {
			continue
		}
		out = append(out, env.Leftover{
			Kind: "process", Name: strconv.Itoa(pid), What: args[at+4], Since: startedAt(start),
			Remove: func(context.Context) error { return errors.Join(killChildren(pid), killOne(pid, start)) },
		})
	}
	return out, nil
}

// killChildren kills what a process has started itself.
func killChildren(parent int) error {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		raw, readErr := os.ReadFile(file)
		if readErr != nil {
			continue // gone
		}
		f := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
		pid, pidErr := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if len(f) < 20 || pidErr != nil || string(f[1]) != strconv.Itoa(parent) {
			continue
		}
		if start, alive := startTime(pid); alive {
			err = errors.Join(err, killOne(pid, start))
		}
	}
	return err
}

// killOne kills the process that was seen, not one that has its number now.
func killOne(pid int, start int64) error {
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

// startedAt is the time of a number of clock ticks (of 10 ms) after boot.
func startedAt(ticks int64) time.Time {
	var up unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(ticks)*10*time.Millisecond - time.Duration(up.Nano()))
}
