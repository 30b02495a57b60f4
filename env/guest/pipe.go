package guest

import (
	"errors"
	"io/fs"
	"os"
)

// Permissions of the pipes that programs get. Every process of the same user can
// open a pipe once more by /proc/PID/fd, and what it then reads is missing
// elsewhere; the pipe's mode says whether it may.
const (
	onlyWrite fs.FileMode = 0o200 // output: programs write to /dev/stdout
	onlyHeld  fs.FileMode = 0     // the input of a shell or debugger
)

// pipe is os.Pipe with permissions.
func pipe(mode fs.FileMode) (r, w *os.File, err error) {
	if r, w, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	if err := w.Chmod(mode); err != nil {
		return nil, nil, errors.Join(err, r.Close(), w.Close())
	}
	return r, w, nil
}
