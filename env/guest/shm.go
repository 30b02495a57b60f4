package guest

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// unmappedSegments returns the System V shared memory segments that no process has mapped,
// and the bytes of memory that they occupy. These bytes are not part of any process's
// resident set size.
func unmappedSegments() (ids []int, size int64) {
	raw, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return nil, 0
	}
	for i, line := range bytes.Split(raw, []byte("\n")) {
		// Columns: key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap
		f := bytes.Fields(line)
		if i == 0 || len(f) < 16 || string(f[6]) != "0" {
			continue
		}
		id, err := strconv.Atoi(string(f[1]))
		rss, err2 := strconv.ParseInt(string(f[14]), 10, 64)
		if err == nil && err2 == nil {
			ids, size = append(ids, id), size+rss
		}
	}
	return ids, size
}

func removeSegments(ids []int) {
	for _, id := range ids {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) // fails if the segment is gone or belongs to another user
	}
}
