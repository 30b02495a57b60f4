package framing

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
)

// Bounds in bytes: of one escape, which is ordinary output if it is longer, and of a frame made of
// several.
const (
	MaxPiece = 8 << 10
	MaxFrame = 1 << 20
)

const (
	esc    = 0x1b
	bel    = 0x07
	prefix = "\x1b]7717;"
)

// Frame is one announcement of the process.
type Frame struct {
	Seq  uint64
	PID  int
	Body json.RawMessage // valid JSON
}

// Scanner splits a stream into output and frames, whatever its chunks. It holds back at most one
// unfinished escape. Until Expect is called everything is output. Not safe for concurrent use.
type Scanner struct {
	start  []byte // how every frame of the nonce begins
	held   []byte // an escape begun and not yet ended
	seq    uint64 // of the last frame with this nonce
	pid    int    // 0: no frame yet
	begun  Frame  // the pieces of a frame so far
	pieces int
	of     int
}

// Expect accepts only frames with nonce, which must consist of letters and digits, from now on. Call
// Flush before.
func (s *Scanner) Expect(nonce string) {
	s.start, s.seq, s.pieces = []byte(prefix+nonce+";"), 0, 0
}

// Next consumes p up to the end of the next frame. It hands output to text in
// order and returns the rest of p; frame is nil when p ended without one. The
// slices given to text are only valid during the call.
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

// hold moves bytes of p that can continue the held escape into it, up to and
// including its BEL, and reports how many, and whether it can still be a frame.
// A byte that cannot continue it is left in p: it may begin the next escape.
func (s *Scanner) hold(p []byte) (n int, ok bool) {
	for n < len(p) {
		c, at := p[n], len(s.held)
		switch {
		case at < len(s.start):
			ok = c == s.start[at]
		default:
			ok = at < MaxPiece && (c == bel || bodyByte(c))
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

func bodyByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c == '+' || c == '/' || c == '=' || c == ';'
}

// parse reads the held escape from ESC to BEL. It refuses an escape out of order or of another
// process; frame is nil while pieces are missing.
func (s *Scanner) parse() (frame *Frame, ok bool) {
	fields := bytes.Split(s.held[len(s.start):len(s.held)-1], []byte{';'})
	if len(fields) != 5 {
		return nil, false
	}
	seq, err := strconv.ParseUint(string(fields[0]), 10, 64)
	if err != nil || seq <= s.seq {
		return nil, false
	}
	var number [3]int // process, piece, pieces
	for i := range number {
		n, err := strconv.ParseInt(string(fields[1+i]), 10, 32)
		if err != nil || n < 1 {
			return nil, false
		}
		number[i] = int(n)
	}
	pid, piece, of := number[0], number[1], number[2]
	if s.pid != 0 && pid != s.pid {
		return nil, false
	}
	data, err := base64.StdEncoding.AppendDecode(nil, fields[4])
	if err != nil {
		return nil, false
	}
	if piece == 1 {
		s.begun, s.pieces, s.of = Frame{Seq: seq, PID: pid}, 0, of
	}
	if piece != s.pieces+1 || of != s.of || seq != s.begun.Seq || pid != s.begun.PID || len(s.begun.Body)+len(data) > MaxFrame {
		return nil, false
	}
	s.begun.Body, s.pieces = append(s.begun.Body, data...), piece
	if piece < of {
		return nil, true
	}
	s.pieces = 0
	if piece > of || !json.Valid(s.begun.Body) {
		return nil, false
	}
	f := s.begun
	s.begun, s.seq, s.pid = Frame{}, seq, pid
	return &f, true
}

// Flush returns an unfinished escape as output, at the end of the stream or before another nonce.
func (s *Scanner) Flush(text func([]byte)) {
	if len(s.held) > 0 {
		text(s.held)
	}
	if cap(s.held) > 64<<10 {
		s.held = nil
	}
	s.held = s.held[:0]
}
