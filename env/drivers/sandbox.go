package drivers

import (
	"cmp"
	"context"
	"crypto/rand"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/schemas"
)

// Places inside every isolated sandbox.
const (
	defaultWorkdir = "/workspace"
	home           = "/home/user"
	guestPath      = "/run/tracesmith/guest"
	binPath        = "/run/tracesmith/bin"
	systemPath     = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	insideUser     = 1000
)

// outsideBound is how long it may take to find out what ended a sandbox.
const outsideBound = 2 * time.Second

// closeBound is how long a sandbox may take to go by itself.
const closeBound = 2 * time.Second

var _ env.Placed = (*sandbox)(nil)

// sandbox is a guest with what has to be torn down around it.
type sandbox struct {
	*guest.Client
	key     schemas.EnvKey
	temp    string                      // the directory for temporary files where it is not /tmp
	destroy func(context.Context) error // after the stream was closed

	once sync.Once
	err  error
}

// Key implements env.Sandbox.
func (s *sandbox) Key() schemas.EnvKey { return s.key }

// TempDir implements env.Placed, as the client's Workdir does.
func (s *sandbox) TempDir() string { return s.temp }

// Close implements env.Sandbox. It cleans up even if ctx has ended.
func (s *sandbox) Close(ctx context.Context) error {
	s.once.Do(func() {
		s.Hangup()
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		s.err = s.destroy(late)
	})
	return s.err
}

// withDefaults fills in the limits left open; one below zero stays, and lifts
// the limit.
func withDefaults(l env.Limits) env.Limits {
	d := env.DefaultLimits
	return env.Limits{
		MemoryBytes: cmp.Or(l.MemoryBytes, d.MemoryBytes),
		DiskBytes:   cmp.Or(l.DiskBytes, d.DiskBytes),
		Processes:   cmp.Or(l.Processes, d.Processes),
		CPUs:        cmp.Or(l.CPUs, d.CPUs),
		CPUTime:     cmp.Or(l.CPUTime, d.CPUTime),
		OpenFiles:   cmp.Or(l.OpenFiles, d.OpenFiles),
	}
}

// environment is what every program sees, no host variable among it; search is
// put before the system's PATH.
func environment(homeDir string, search, extra []string) []string {
	return append([]string{
		"PATH=" + strings.Join(append(slices.Clone(search), systemPath), ":"),
		"HOME=" + homeDir,
		"USER=user",
		"LANG=C.UTF-8",
		"LC_ALL=C.UTF-8",
		"TZ=UTC",
		"TERM=dumb",
		"NO_COLOR=1",
		"PAGER=cat",
		"GIT_PAGER=cat",
		"PYTHONDONTWRITEBYTECODE=1",
		"PYTHONHASHSEED=0",
	}, extra...)
}

// share splits the disk limit among the sized file systems of a sandbox:
// workspace 5/8, temporary files 2/8, home 1/16, shared memory 1/16.
// Without a limit it is -1.
func share(disk int64, sixteenths int64) int64 {
	if disk < 0 {
		return -1
	}
	return max(disk/16*sixteenths, 1<<20)
}

// inodes is how many files a file system of that size may hold: one per 4 KiB
// block and some, so that small ones are usable.
func inodes(size int64) int64 { return size/4096 + 1024 }

// lift records the limits that the caller took away.
func lift(k *schemas.EnvKey, l env.Limits) {
	for _, one := range []struct {
		lifted bool
		names  []string
	}{
		{l.MemoryBytes < 0, []string{"memory"}},
		{l.DiskBytes < 0, []string{"disk", "inodes"}},
		{l.Processes < 0, []string{"processes"}},
		{l.CPUs < 0, []string{"cpus"}},
		{l.CPUTime < 0, []string{"cpu_time"}},
		{l.OpenFiles < 0, []string{"open_files"}},
	} {
		for _, name := range one.names {
			if _, held := k.Limits[name]; one.lifted && held {
				delete(k.Limits, name)
				k.Unenforced = append(k.Unenforced, name)
			}
		}
	}
	slices.Sort(k.Unenforced)
}

// randomName is no other sandbox's.
func randomName() string { return strings.ToLower(rand.Text()[:16]) }

// parents lists the directories above p, outermost first, without the root.
func parents(p string) []string {
	var out []string
	for d := path.Dir(p); d != "/" && d != "."; d = path.Dir(d) {
		out = append(out, d)
	}
	slices.Reverse(out)
	return out
}
