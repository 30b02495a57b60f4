package guest

import (
	"bytes"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// matches collects the response to a search, within the limits of the request.
type matches struct {
	req        *guestpb.SearchRequest
	resp       *guestpb.SearchResponse
	size       int   // bytes of resp
	matchCount int64 // matching lines in resp
	full       bool
}

// fileMatches adds the matching lines of one file, and the context lines around them, to the
// matches of all files.
type fileMatches struct {
	all         *matches
	path        string
	before      []*guestpb.Line // the last lines before this one that are not in the response
	contextLeft int64           // number of lines after the last match that are still to be added
	hasPath     bool            // a line in the response has the path
}

// addMatch adds line number n, which has size bytes and matches at index at, with the context
// lines before it.
func (s *fileMatches) addMatch(n int64, line []byte, size int64, at int) {
	if s.all.matchCount >= s.all.req.MaxMatches {
		s.all.full = true
	}
	if s.all.full {
		return
	}
	for _, l := range s.before {
		s.add(l)
	}
	s.before = s.before[:0]
	l := s.clip(n, line, size, at)
	l.Match = true
	s.add(l)
	s.all.matchCount++
	s.contextLeft = s.all.req.Context
}

// addOther handles a line that does not match. It adds the line if it is a context line after a
// match, and otherwise keeps it, because it may be a context line before the next match.
func (s *fileMatches) addOther(n int64, line []byte, size int64) {
	switch {
	case s.all.full || s.all.req.Context == 0:
	case s.contextLeft > 0:
		s.contextLeft--
		s.add(s.clip(n, line, size, 0))
	default:
		if len(s.before) == int(s.all.req.Context) {
			s.before = append(s.before[:0], s.before[1:]...)
		}
		s.before = append(s.before, s.clip(n, line, size, 0))
	}
}

// add appends a line unless the response is full.
func (s *fileMatches) add(l *guestpb.Line) {
	if !s.hasPath {
		l.File = []byte(s.path)
	}
	cost := len(l.Text) + len(l.File)
	if s.all.full || s.all.size > 0 && s.all.size+cost > int(s.all.req.MaxBytes) {
		s.all.full = true
		return
	}
	s.hasPath = true
	s.all.size += cost
	s.all.resp.Lines = append(s.all.resp.Lines, l)
}

// clip returns a line with at most MaxLine bytes of its text around index at. It does not cut
// characters in two.
func (s *fileMatches) clip(n int64, line []byte, size int64, at int) *guestpb.Line {
	from, to := 0, len(line)
	if maxLen := int(s.all.req.MaxLine); to > maxLen {
		if at > maxLen/2 {
			from = min(at-maxLen/4, to-maxLen)
		}
		to = from + maxLen
		for from < to && from > 0 && !utf8.RuneStart(line[from]) {
			from++
		}
		for to > from && to < len(line) && !utf8.RuneStart(line[to]) {
			to--
		}
	}
	return &guestpb.Line{Number: n, Text: bytes.Clone(line[from:to]), Cut: int64(from), Size: size}
}
