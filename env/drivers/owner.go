package drivers

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Owner identifies the process that made a sandbox. No later process and no process of another machine or pid
// namespace has the same Owner.
type Owner struct {
	host, boot, space string // machine, its boot, pid namespace
	pid, start        int64
}

// Self is this process.
func Self() Owner {
	o := here()
	pid := os.Getpid()
	o.pid = int64(pid)
	o.start, _ = startTime(pid)
	return o
}

// Machine identifies this machine in 12 hexadecimal digits.
func Machine() string { return here().host }

// here is an owner without a process.
func here() Owner {
	name, _ := os.Hostname()
	sum := sha256.Sum256([]byte(firstLine("/etc/machine-id") + "/" + name))
	space, _ := os.Readlink("/proc/self/ns/pid")
	return Owner{
		host:  hex.EncodeToString(sum[:6]),
		boot:  strings.ReplaceAll(firstLine("/proc/sys/kernel/random/boot_id"), "-", ""),
		space: strings.Trim(space, "pid:[]"),
	}
}

// String returns the form that ParseOwner reads: machine, boot, pid namespace, pid and start time, with dots between
// them. It has more than the 63 characters of a Kubernetes label.
func (o Owner) String() string {
	return fmt.Sprintf("%s.%s.%s.%d.%d", o.host, o.boot, o.space, o.pid, o.start)
}

// ParseOwner reads what String wrote; ok is false for any other text.
func ParseOwner(s string) (o Owner, ok bool) {
	f := strings.Split(s, ".")
	if len(f) != 5 {
		return Owner{}, false
	}
	pid, err1 := strconv.ParseInt(f[3], 10, 32)
	start, err2 := strconv.ParseInt(f[4], 10, 64)
	return Owner{f[0], f[1], f[2], pid, start}, err1 == nil && err2 == nil
}

// Dead reports whether the owner ran on this machine and has certainly ended. It is false if this process cannot
// tell, such as for an owner on another machine.
func (o Owner) Dead() bool {
	at := here()
	if o.host != at.host || at.boot == "" {
		return false
	}
	if o.boot != at.boot {
		return true
	}
	if o.space != at.space {
		return false // this process does not see it
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
