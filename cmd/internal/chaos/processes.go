package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// process is an entry of the process table.
type process struct {
	pid, parent int
	args        []string
	environ     []byte
}

// processes reads the process table. It leaves out processes that end meanwhile, and zombies.
func processes() (all []process, err error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("reading the process table: %w", err)
	}
	for _, dir := range dirs {
		stat, err1 := os.ReadFile(dir + "/stat")
		args, err2 := os.ReadFile(dir + "/cmdline")
		environ, _ := os.ReadFile(dir + "/environ") // those of other users may be unreadable
		pid, err3 := strconv.Atoi(filepath.Base(dir))
		// The name, in parentheses, may contain any character. State and parent follow it.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if errors.Join(err1, err2, err3) != nil || len(fields) < 2 || fields[0] == "Z" {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		all = append(all, process{pid, parent, strings.Split(string(args), "\x00"), environ})
	}
	return all, nil
}

// killGuest kills one guest among the descendants of the process root, chosen by number. It
// does not kill the process that holds the guest's sandbox.
func killGuest(root int, guest string, number int) (found bool, err error) {
	all, err := processes()
	if err != nil {
		return false, err
	}
	descendants := map[int]bool{root: true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if descendants[p.parent] && !descendants[p.pid] {
				descendants[p.pid], grown = true, true
			}
		}
	}
	isGuest := map[int]bool{}
	for _, p := range all {
		isGuest[p.pid] = descendants[p.pid] && len(p.args) > 1 && p.args[1] == guest
	}
	var guests []int
	for _, p := range all { // a child that a guest has just forked has the guest's arguments
		if isGuest[p.pid] && !isGuest[p.parent] {
			guests = append(guests, p.pid)
		}
	}
	if len(guests) == 0 {
		return false, nil
	}
	slices.Sort(guests)
	if err := syscall.Kill(guests[number%len(guests)], syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return true, fmt.Errorf("killing a guest: %w", err)
	}
	return true, nil
}
