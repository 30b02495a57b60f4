package env

import (
	"errors"
	"io"
)

// Stream runs write and read concurrently, connected by a pipe, until both have returned.
// It returns the error of write, or the error of read if write has none. If read returns
// early, the next write to the pipe fails; Stream does not report that failure.
func Stream(write func(io.Writer) error, read func(io.Reader) error) error {
	pr, pw := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(pw)
		pw.CloseWithError(err) // nil: end of file
		written <- err
	}()
	readErr := read(pr)
	pr.CloseWithError(errReaderDone)
	if err := <-written; err != nil && !errors.Is(err, errReaderDone) {
		return err
	}
	return readErr
}

// errReaderDone stops a writer whose reader has returned.
var errReaderDone = errors.New("the reader has returned")
