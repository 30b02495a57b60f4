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

// Owner identifies the process that created a sandbox. No two processes have the same Owner, even on different
// machines or in different pid namespaces.
type Owner struct {
	host       string // identifies the machine
	boot       string // identifies the boot of the machine
	pidNS      string // the number of the pid namespace
	pid, start int64  // start is in clock ticks since boot
}

// Self returns the Owner of this process.
func Self() Owner {
	o := thisMachine()
	pid := os.Getpid()
	o.pid = int64(pid)
	o.start, _ = startTime(pid)
	return o
}

// MachineID returns 12 hexadecimal digits that identify this machine.
func MachineID() string { return thisMachine().host }

// thisMachine returns an Owner without a process.
func thisMachine() Owner {
	name, _ := os.Hostname()
	sum := sha256.Sum256([]byte(firstLine("/etc/machine-id") + "/" + name))
	pidNS, _ := os.Readlink("/proc/self/ns/pid")
	return Owner{
		host:  hex.EncodeToString(sum[:6]),
		boot:  strings.ReplaceAll(firstLine("/proc/sys/kernel/random/boot_id"), "-", ""),
		pidNS: strings.Trim(pidNS, "pid:[]"),
	}
}

// String returns the text that ParseOwner reads: machine, boot, pid namespace, pid and start time, separated by dots.
// It is longer than the 63 characters that a Kubernetes label can contain.
func (o Owner) String() string {
	return fmt.Sprintf("%s.%s.%s.%d.%d", o.host, o.boot, o.pidNS, o.pid, o.start)
}

// ParseOwner parses the result of String. ok is false for any other text.
func ParseOwner(s string) (o Owner, ok bool) {
	f := strings.Split(s, ".")
	if len(f) != 5 {
		return Owner{}, false
	}
	pid, err1 := strconv.ParseInt(f[3], 10, 32)
	start, err2 := strconv.ParseInt(f[4], 10, 64)
	return Owner{f[0], f[1], f[2], pid, start}, err1 == nil && err2 == nil
}

// Dead reports whether the owner certainly has ended. It returns false if this process cannot know that, for example
// for an owner on another machine.
func (o Owner) Dead() bool {
	current := thisMachine()
	if o.host != current.host || current.boot == "" {
		return false
	}
	if o.boot != current.boot {
		return true
	}
	if o.pidNS != current.pidNS {
		return false // this process cannot see the owner
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

// startTime returns field 22 of /proc/PID/stat, the start time of a process in clock ticks since boot.
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
