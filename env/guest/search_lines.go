package guest

import (
	"bufio"
	"errors"
	"io"
	"os"
	"time"
)

const (
	maxScanLine = 16 << 20 // bytes; the rest of a longer line is not searched
	longLine    = 64 << 10 // bytes; a search in a line of at least this length also checks the time limit within the line
)

// lineReader reads the lines of one file after another.
type lineReader struct {
	in   *bufio.Reader
	file countedFile
	long []byte // a line that did not fit the buffer
	end  time.Time
	n    int   // number of reads; only every 256th read checks the time limit
	read int64 // bytes of the current file
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

var errTimeUp = errors.New("out of time")

// next returns the next line without its newline, and the line's length. It returns only the
// beginning of a line longer than maxScanLine. The line is valid until the next call.
func (r *lineReader) next() (line []byte, size int64, err error) {
	r.long = r.long[:0]
	for {
		if r.n++; r.n%256 == 0 && !time.Now().Before(r.end) {
			return nil, 0, errTimeUp
		}
		chunk, err := r.in.ReadSlice('\n')
		size += int64(len(chunk))
		complete := err == nil
		if complete {
			chunk, size = chunk[:len(chunk)-1], size-1
		}
		if complete && len(r.long) == 0 {
			return chunk, size, nil
		}
		r.long = append(r.long, chunk[:min(len(chunk), maxScanLine-len(r.long))]...)
		switch {
		case complete, errors.Is(err, io.EOF) && size > 0:
			return r.long, size, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, 0, err
		}
	}
}
