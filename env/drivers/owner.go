package drivers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/env/guest"
)

// An owner is the process that made a sandbox, named so that no later process
// can be mistaken for it: host boot, pid, start time.
type owner struct {
	boot       string
	pid, start int64
}

func self() owner {
	pid := os.Getpid()
	start, _ := startTime(pid)
	return owner{boot: bootID(), pid: int64(pid), start: start}
}

func (o owner) String() string { return fmt.Sprintf("%s.%d.%d", o.boot, o.pid, o.start) }

func parseOwner(s string) (owner, bool) {
	f := strings.Split(s, ".")
	if len(f) != 3 {
		return owner{}, false
	}
	pid, err1 := strconv.ParseInt(f[1], 10, 32)
	start, err2 := strconv.ParseInt(f[2], 10, 64)
	return owner{f[0], pid, start}, err1 == nil && err2 == nil
}

// dead is true only where the owner ran on this host and is gone for certain.
func (o owner) dead() bool {
	if o.boot == "" || bootID() == "" {
		return false
	}
	if o.boot != bootID() {
		return true
	}
	start, alive := startTime(int(o.pid))
	return !alive || start != o.start
}

func bootID() string {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(strings.TrimSpace(string(raw)), "-", "")
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

// reapGuests kills guests whose owner is dead and whose executable is not inside
// a container of ours; the kernel takes the rest of their sandbox with them.
func reapGuests(ctx context.Context) (int, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	killed := 0
	for _, line := range lines {
		if ctx.Err() != nil {
			return killed, ctx.Err()
		}
		raw, err := os.ReadFile(line)
		if err != nil {
			continue // gone, or not ours to see
		}
		args := strings.Split(string(raw), "\x00")
		if len(args) < 4 || args[1] != guest.ServeArg || args[2] != "-owner" {
			continue
		}
		o, ok := parseOwner(args[3])
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line)))
		if ok && err == nil && o.dead() && unix.Kill(pid, unix.SIGKILL) == nil {
			killed++
		}
	}
	return killed, nil
}
