package framing

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strconv"
)

// MaxFrame bounds one frame in bytes; a longer escape is ordinary output.
const MaxFrame = 1 << 20

const (
	esc    = 0x1b
	bel    = 0x07
	prefix = "\x1b]7717;"
)

// NewNonce returns a fresh nonce: 26 letters and digits, 130 bits.
func NewNonce() string { return rand.Text() }

// Frame is one announcement of the process.
type Frame struct {
	Seq  uint64
	PID  int
	Body json.RawMessage // valid JSON
}

// Scanner splits a stream into output and frames, however it is cut into
// chunks. It holds back at most one unfinished escape. Not safe for concurrent
// use.
type Scanner struct {
	start []byte // how every frame of this nonce begins
	held  []byte // an escape begun and not yet ended
	seq   uint64
	pid   int
	any   bool
}

// NewScanner returns a scanner for frames that carry nonce, which must consist
// of letters and digits.
func NewScanner(nonce string) *Scanner {
	return &Scanner{start: []byte(prefix + nonce + ";")}
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
			if f := s.parse(); f != nil {
				s.held = s.held[:0]
				return f, p
			}
			s.Flush(text)
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
			ok = at < MaxFrame && (c == bel || bodyByte(c))
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

// parse reads the held escape, whole from ESC to BEL, and refuses a frame out of
// order or of another process.
func (s *Scanner) parse() *Frame {
	fields := bytes.Split(s.held[len(s.start):len(s.held)-1], []byte{';'})
	if len(fields) != 3 {
		return nil
	}
	seq, err := strconv.ParseUint(string(fields[0]), 10, 64)
	if err != nil || s.any && seq <= s.seq {
		return nil
	}
	pid, err := strconv.ParseInt(string(fields[1]), 10, 32)
	if err != nil || s.any && int(pid) != s.pid {
		return nil
	}
	body := make([]byte, base64.StdEncoding.DecodedLen(len(fields[2])))
	n, err := base64.StdEncoding.Decode(body, fields[2])
	if err != nil || !json.Valid(body[:n]) {
		return nil
	}
	s.seq, s.pid, s.any = seq, int(pid), true
	return &Frame{Seq: seq, PID: s.pid, Body: body[:n]}
}

// Flush hands out an unfinished escape as output: the stream has ended, or
// nobody will wait for the rest of it.
func (s *Scanner) Flush(text func([]byte)) {
	if len(s.held) > 0 {
		text(s.held)
	}
	if cap(s.held) > 64<<10 {
		s.held = nil
	}
	s.held = s.held[:0]
}
