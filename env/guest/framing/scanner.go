package framing

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
)

// Limits in bytes. Anything longer counts as output.
const (
	MaxPiece = 8 << 10 // of one escape sequence
	MaxFrame = 1 << 20 // of the body of a frame, which may consist of several pieces
)

const (
	esc    = 0x1b
	bel    = 0x07
	prefix = "\x1b]7717;"
)

// Frame is a message in which the process announces that it is ready for the next command.
type Frame struct {
	Seq  uint64
	PID  int
	Body json.RawMessage // valid JSON
}

// Scanner splits a stream into output and frames. The stream may arrive in chunks of any size. A
// Scanner holds back at most one unfinished escape sequence. Until Expect is called, everything is
// output. A Scanner is not safe for concurrent use.
type Scanner struct {
	start []byte // the first bytes of every escape sequence with the expected nonce
	held  []byte // an unfinished escape sequence
	seq   uint64 // of the last complete frame with this nonce
	pid   int    // of the process; 0 = no frame yet

	partial Frame // an incomplete frame
	pieces  int   // number of its pieces so far
	total   int   // number of all its pieces
}

// Expect sets the nonce, which must consist of letters and digits. From then on, only escape
// sequences with this nonce count as frames. Call Flush first.
func (s *Scanner) Expect(nonce string) {
	s.start, s.seq, s.pieces = []byte(prefix+nonce+";"), 0, 0
}

// Next consumes p up to the end of the next frame and returns the frame and the
// rest of p. It passes the output before the frame to text, in order. frame is nil
// if p ends before a frame is complete. text must not keep the slices it gets.
func (s *Scanner) Next(p []byte, text func([]byte)) (frame *Frame, rest []byte) {
	for len(p) > 0 {
		if len(s.held) == 0 {
			i := bytes.IndexByte(p, esc)
			if i < 0 {
				text(p)
				return nil, nil
			}
			if i > 0 {
				text(p[:i])
			}
			s.held, p = append(s.held, esc), p[i+1:]
			continue
		}
		n, ok := s.hold(p)
		p = p[n:]
		switch {
		case !ok:
			s.Flush(text)
		case s.held[len(s.held)-1] == bel:
			f, ok := s.parse()
			if !ok {
				s.Flush(text)
				continue
			}
			s.held = s.held[:0]
			if f != nil {
				return f, p
			}
		}
	}
	return nil, nil
}

// hold appends the bytes of p that can continue the held escape sequence, up to and including BEL,
// and returns their number. If p[n] cannot continue the sequence, ok is false and the sequence is
// not a frame. hold does not consume that byte, because it may begin the next sequence.
func (s *Scanner) hold(p []byte) (n int, ok bool) {
	for n < len(p) {
		c, at := p[n], len(s.held)
		switch {
		case at < len(s.start):
			ok = c == s.start[at]
		default:
			ok = at < MaxPiece && (c == bel || isBodyByte(c))
		}
		if !ok {
			return n, false
		}
		s.held = append(s.held, c)
		n++
		if c == bel {
			break
		}
	}
	return n, true
}

func isBodyByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c == '+' || c == '/' || c == '=' || c == ';'
}

// parse parses the held escape sequence. ok is false if the sequence is malformed, out of order or
// from another process. frame is nil while pieces are missing.
func (s *Scanner) parse() (frame *Frame, ok bool) {
	fields := bytes.Split(s.held[len(s.start):len(s.held)-1], []byte{';'})
	if len(fields) != 5 {
		return nil, false
	}
	seq, err := strconv.ParseUint(string(fields[0]), 10, 64)
	if err != nil || seq <= s.seq {
		return nil, false
	}
	var numbers [3]int // process, piece, number of pieces
	for i := range numbers {
		n, err := strconv.ParseInt(string(fields[1+i]), 10, 32)
		if err != nil || n < 1 {
			return nil, false
		}
		numbers[i] = int(n)
	}
	pid, piece, total := numbers[0], numbers[1], numbers[2]
	if s.pid != 0 && pid != s.pid {
		return nil, false
	}
	data, err := base64.StdEncoding.AppendDecode(nil, fields[4])
	if err != nil {
		return nil, false
	}
	if piece == 1 {
		s.partial, s.pieces, s.total = Frame{Seq: seq, PID: pid}, 0, total
	}
	if piece != s.pieces+1 || total != s.total || seq != s.partial.Seq || pid != s.partial.PID || len(s.partial.Body)+len(data) > MaxFrame {
		return nil, false
	}
	s.partial.Body, s.pieces = append(s.partial.Body, data...), piece
	if piece < total {
		return nil, true
	}
	s.pieces = 0
	if piece > total || !json.Valid(s.partial.Body) {
		return nil, false
	}
	f := s.partial
	s.partial, s.seq, s.pid = Frame{}, seq, pid
	return &f, true
}

// Flush passes an unfinished escape sequence to text as output. Call it at the end of the stream,
// and before Expect.
func (s *Scanner) Flush(text func([]byte)) {
	if len(s.held) > 0 {
		text(s.held)
	}
	if cap(s.held) > 64<<10 {
		s.held = nil
	}
	s.held = s.held[:0]
}
