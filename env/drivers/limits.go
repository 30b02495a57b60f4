package drivers

import (
	"cmp"
	"slices"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// WithDefaults replaces limits that are 0 with those of env.DefaultLimits. It keeps negative values, which mean no
// limit.
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

// DiskShare returns the size in bytes of a file system that gets some sixteenths of a sandbox's disk limit, at least
// 1 MiB. The workspace gets 10 sixteenths, temporary files 4, and the home directory and shared memory 1 each. If the
// disk is not limited, DiskShare returns -1.
func DiskShare(disk, sixteenths int64) int64 {
	if disk < 0 {
		return -1
	}
	return max(disk/16*sixteenths, 1<<20)
}

// InodeLimit returns the number of files that a file system of size bytes may contain: one per block of 4 KiB, plus
// some to keep small file systems usable.
func InodeLimit(size int64) int64 { return size/4096 + 1024 }

// RecordLifted moves the limits that are negative in l from k.Limits to k.Unenforced, and sorts k.Unenforced.
func RecordLifted(k *schemas.EnvKey, l env.Limits) {
	for _, limit := range []struct {
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
		for _, name := range limit.names {
			if _, enforced := k.Limits[name]; limit.lifted && enforced {
				delete(k.Limits, name)
				k.Unenforced = append(k.Unenforced, name)
			}
		}
	}
	slices.Sort(k.Unenforced)
}
