package guest

import (
	"bufio"
	"errors"
	"io"
	"os"
	"time"
)

const (
	maxScanLine = 16 << 20 // bytes of a line that are searched
	longLine    = 64 << 10 // from this length on the time limit is also checked within a line
)

// lineReader reads lines, of one file after another.
type lineReader struct {
	in   *bufio.Reader
	file countedFile
	long []byte // a line that did not fit the buffer
	end  time.Time
	n    int
	read int64 // bytes of this file
}

type countedFile struct {
	*os.File
	read *int64
}

func (f countedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	*f.read += int64(n)
	return n, err
}

func (r *lineReader) reset(f *os.File) {
	r.read, r.file = 0, countedFile{f, &r.read}
	if r.in == nil {
		r.in = bufio.NewReaderSize(nil, longLine)
	}
	r.in.Reset(r.file)
}

func (r *lineReader) peek(n int) []byte {
	head, _ := r.in.Peek(n)
	return head
}

var errTime = errors.New("out of time")

// next returns the next line without its newline, valid until the next call, and the
// line's length. It returns only the beginning of a line longer than maxScanLine.
func (r *lineReader) next() (line []byte, size int64, err error) {
	r.long = r.long[:0]
	for {
		if r.n++; r.n%256 == 0 && !time.Now().Before(r.end) {
			return nil, 0, errTime
		}
		piece, err := r.in.ReadSlice('\n')
		size += int64(len(piece))
		whole := err == nil
		if whole {
			piece, size = piece[:len(piece)-1], size-1
		}
		if whole && len(r.long) == 0 {
			return piece, size, nil
		}
		r.long = append(r.long, piece[:min(len(piece), maxScanLine-len(r.long))]...)
		switch {
		case whole, errors.Is(err, io.EOF) && size > 0:
			return r.long, size, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, 0, err
		}
	}
}
