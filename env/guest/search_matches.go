package guest

import (
	"bytes"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// matches collects the answer to a search within the limits of the request.
type matches struct {
	req     *guestpb.SearchRequest
	resp    *guestpb.SearchResponse
	size    int   // bytes of resp
	matched int64 // matching lines in resp
	full    bool
}

// fileMatches adds the matching lines of one file, and the lines around them, to matches.
type fileMatches struct {
	to     *matches
	path   string
	before []*guestpb.Line // the last lines passed that are not in the answer
	after  int64           // how many lines after a match are still wanted
	named  bool            // a line in the answer has the path
}

func (s *fileMatches) matched(n int64, line []byte, size int64, at int) {
	if s.to.matched >= s.to.req.MaxMatches {
		s.to.full = true
	}
	if s.to.full {
		return
	}
	for _, l := range s.before {
		s.add(l)
	}
	s.before = s.before[:0]
	l := s.line(n, line, size, at)
	l.Match = true
	s.add(l)
	s.to.matched++
	s.after = s.to.req.Context
}

func (s *fileMatches) passed(n int64, line []byte, size int64) {
	switch {
	case s.to.full || s.to.req.Context == 0:
	case s.after > 0:
		s.after--
		s.add(s.line(n, line, size, 0))
	default:
		if len(s.before) == int(s.to.req.Context) {
			s.before = append(s.before[:0], s.before[1:]...)
		}
		s.before = append(s.before, s.line(n, line, size, 0))
	}
}

// add appends a line unless the answer is full.
func (s *fileMatches) add(l *guestpb.Line) {
	if !s.named {
		l.File = []byte(s.path)
	}
	cost := len(l.Text) + len(l.File)
	if s.to.full || s.to.size > 0 && s.to.size+cost > int(s.to.req.MaxBytes) {
		s.to.full = true
		return
	}
	s.named = true
	s.to.size += cost
	s.to.resp.Lines = append(s.to.resp.Lines, l)
}

// line copies the part of a line that is shown: at most MaxLine bytes around at, whole
// characters.
func (s *fileMatches) line(n int64, line []byte, size int64, at int) *guestpb.Line {
	from, to := 0, len(line)
	if most := int(s.to.req.MaxLine); to > most {
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
