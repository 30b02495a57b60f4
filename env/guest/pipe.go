package guest

import (
	"errors"
	"io/fs"
	"os"
)

// Permissions of the pipes that programs get. Every process of the same user can open a
// pipe again through /proc/PID/fd, and what it reads there the other end does not get. The
// pipe's mode decides whether it may.
const (
	onlyWrite fs.FileMode = 0o200 // output: programs may open /dev/stdout
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

// feeder writes a program's input.
type feeder struct {
	w    *os.File // nil if the program reads /dev/null
	done chan struct{}
}

func newFeeder(stdin []byte) (*feeder, *os.File, error) {
	if len(stdin) == 0 {
		null, err := os.Open(os.DevNull)
		return &feeder{}, null, err
	}
	r, w, err := os.Pipe()
	return &feeder{w: w}, r, err
}

func (f *feeder) start(stdin []byte) {
	if f.w == nil {
		return
	}
	f.done = make(chan struct{})
	go func() {
		defer close(f.done)
		_, _ = f.w.Write(stdin) // fails if the program does not read all of it
		_ = f.w.Close()
	}()
}

func (f *feeder) stop() {
	if f.w == nil {
		return
	}
	_ = f.w.Close()
	if f.done != nil {
		<-f.done
	}
}
