package envtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hostProcesses lists the processes on the host that run "sleep WORD".
func hostProcesses(t *testing.T, word string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			continue // the process has ended
		}
		if args := strings.Split(string(raw), "\x00"); len(args) > 1 && args[0] == "sleep" && args[1] == word {
			out = append(out, strings.Join(args, " "))
		}
	}
	return out
}

// watchThreads counts, from the host, the threads of a sandbox until done is called.
// done returns the maximum, or 0 if they are not visible from the host.
func watchThreads(t *testing.T, f *fixture) (done func() int) {
	t.Helper()
	space := strings.TrimSpace(f.sh(t, "readlink /proc/self/ns/pid"))
	over, peak := make(chan struct{}), make(chan int)
	go func() {
		most := 0
		others := map[string]bool{}
		for {
			n := 0
			names, _ := filepath.Glob("/proc/[0-9]*")
			for _, dir := range names {
				if others[dir] {
					continue
				}
				if at, err := os.Readlink(dir + "/ns/pid"); err == nil && at != space {
					others[dir] = true
				} else if threads, err := os.ReadDir(dir + "/task"); err == nil && at == space {
					n += len(threads)
				}
			}
			most = max(most, n)
			select {
			case <-over:
				peak <- most
				return
			default:
			}
		}
	}()
	return func() int {
		close(over)
		return <-peak
	}
}
