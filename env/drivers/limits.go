package drivers

import (
	"cmp"
	"slices"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// WithDefaults replaces the limits that are 0 by env.DefaultLimits. A limit below 0 stays: it means no limit.
func WithDefaults(l env.Limits) env.Limits {
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

// Share is the size of one of the file systems among which a sandbox splits its disk limit, in bytes, at least 1 MiB:
// the workspace gets 10 sixteenths, temporary files 4, the home directory and shared memory 1 each. Without a limit
// it is -1.
func Share(disk, sixteenths int64) int64 {
	if disk < 0 {
		return -1
	}
	return max(disk/16*sixteenths, 1<<20)
}

// Inodes is the number of files that a file system of size bytes may hold: one per block of 4 KiB, and some more to
// keep small ones usable.
func Inodes(size int64) int64 { return size/4096 + 1024 }

// RecordLifted moves the limits that the caller lifted from k.Limits to k.Unenforced, and sorts the latter.
func RecordLifted(k *schemas.EnvKey, l env.Limits) {
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
