package chaos

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// disk is a tmpfs whose free space can be removed. close accepts a nil disk.
type disk struct{ dir string }

// diskSize is the normal size of a disk in bytes. The engine needs half a GiB of free space.
const diskSize = 4 << 30

// mountDisk mounts a disk at dir. It needs root.
func mountDisk(dir string) (*disk, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making a disk: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("size=%d,mode=0755", diskSize)); err != nil {
		return nil, errors.Join(fmt.Errorf("mounting a separate disk needs root: %w", err), os.Remove(dir))
	}
	return &disk{dir}, nil
}

// fill shrinks the disk to what is used plus the given number of free bytes.
func (d *disk) fill(free uint64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		return fmt.Errorf("measuring the disk: %w", err)
	}
	return d.resize((st.Blocks-st.Bfree)*uint64(st.Bsize) + free)
}

// restore undoes fill. The disk keeps its files.
func (d *disk) restore() error { return d.resize(diskSize) }

func (d *disk) resize(bytes uint64) error {
	if err := unix.Mount("tmpfs", d.dir, "tmpfs", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("size=%d", bytes)); err != nil {
		return fmt.Errorf("resizing the disk: %w", err)
	}
	return nil
}

// close unmounts the disk and removes its mount point. Its files are lost.
func (d *disk) close() error {
	if d == nil {
		return nil
	}
	if err := unix.Unmount(d.dir, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmounting the disk: %w", err)
	}
	if err := os.Remove(d.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the mount point of the disk: %w", err)
	}
	return nil
}
