package guest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// lineReader hands out the lines of one file after another.
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

// next is the next line without its newline, valid until the call after it, and
// its whole length. Of a line beyond maxScanLine only the beginning is returned.
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

// surroundings adds the lines of one file to the answer: matching ones, and
// those around them.
type surroundings struct {
	q      *searcher
	path   string
	before []*guestpb.Line // the last lines passed that are not in the answer
	after  int64           // lines still wanted after a match
	named  bool            // path stands in the answer
}

func (s *surroundings) matched(n int64, line []byte, size int64, at int) {
	if s.q.matched >= s.q.req.MaxMatches {
		s.q.full = true
	}
	if s.q.full {
		return
	}
	for _, l := range s.before {
		s.add(l)
	}
	s.before = s.before[:0]
	l := s.line(n, line, size, at)
	l.Match = true
	s.add(l)
	s.q.matched++
	s.after = s.q.req.Context
}

func (s *surroundings) passed(n int64, line []byte, size int64) {
	switch {
	case s.q.full || s.q.req.Context == 0:
	case s.after > 0:
		s.after--
		s.add(s.line(n, line, size, 0))
	default:
		if len(s.before) == int(s.q.req.Context) {
			s.before = append(s.before[:0], s.before[1:]...)
		}
		s.before = append(s.before, s.line(n, line, size, 0))
	}
}

// add appends a line unless the answer is full.
func (s *surroundings) add(l *guestpb.Line) {
	if !s.named {
		l.File = []byte(s.path)
	}
	cost := len(l.Text) + len(l.File)
	if s.q.full || s.q.size > 0 && s.q.size+cost > int(s.q.req.MaxBytes) {
		s.q.full = true
		return
	}
	s.named = true
	s.q.size += cost
	s.q.resp.Lines = append(s.q.resp.Lines, l)
}

// line copies what is shown of a line: at most MaxLine bytes around at, whole
// characters.
func (s *surroundings) line(n int64, line []byte, size int64, at int) *guestpb.Line {
	from, to := 0, len(line)
	if most := int(s.q.req.MaxLine); to > most {
		if at > most/2 {
			from = min(at-most/4, to-most)
		}
		to = from + most
		for from < to && from > 0 && !utf8.RuneStart(line[from]) {
			from++
		}
		for to > from && to < len(line) && !utf8.RuneStart(line[to]) {
			to--
		}
	}
	return &guestpb.Line{Number: n, Text: bytes.Clone(line[from:to]), Cut: int64(from), Size: size}
}
