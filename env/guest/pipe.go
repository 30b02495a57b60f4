package guest

import (
	"errors"
	"io/fs"
	"os"
)

// Modes of the pipes that programs get. A process of the same user can open a pipe again
// through /proc/PID/fd if the pipe's mode allows it. Without these modes, such a process could
// read data that another process should get.
const (
	writeOnly fs.FileMode = 0o200 // for output, because programs may open /dev/stdout
	noReopen  fs.FileMode = 0     // for the input of a shell or debugger
)

// pipe is like os.Pipe, and sets the mode of the pipe.
func pipe(mode fs.FileMode) (r, w *os.File, err error) {
	if r, w, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	if err := w.Chmod(mode); err != nil {
		return nil, nil, errors.Join(err, r.Close(), w.Close())
	}
	return r, w, nil
}

// inputWriter writes the standard input of a program.
type inputWriter struct {
	w    *os.File // nil if the program reads /dev/null
	done chan struct{}
}

func newInputWriter(stdin []byte) (*inputWriter, *os.File, error) {
	if len(stdin) == 0 {
		null, err := os.Open(os.DevNull)
		return &inputWriter{}, null, err
	}
	r, w, err := os.Pipe()
	return &inputWriter{w: w}, r, err
}

func (iw *inputWriter) start(stdin []byte) {
	if iw.w == nil {
		return
	}
	iw.done = make(chan struct{})
	go func() {
		defer close(iw.done)
		_, _ = iw.w.Write(stdin) // fails if the program does not read all of it
		_ = iw.w.Close()
	}()
}

func (iw *inputWriter) stop() {
	if iw.w == nil {
		return
	}
	_ = iw.w.Close()
	if iw.done != nil {
		<-iw.done
	}
}
