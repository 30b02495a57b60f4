package framing

import (
	"bytes"
	"fmt"
	"strings"
)

// Spool keeps the first and the last bytes written to it, Limit bytes in total, and counts the rest. The
// zero value keeps nothing. A Spool is not safe for concurrent use.
type Spool struct {
	Limit int

	head  []byte
	tail  []byte // a ring buffer of Limit - Limit/2 bytes once it is full
	next  int    // index of the oldest byte in the ring buffer
	total int64
}

// Add appends p.
func (s *Spool) Add(p []byte) {
	s.total += int64(len(p))
	if room := s.Limit/2 - len(s.head); room > 0 {
		n := min(room, len(p))
		s.head, p = append(s.head, p[:n]...), p[n:]
	}
	size := s.Limit - s.Limit/2
	if len(p) > size {
		p = p[len(p)-size:]
	}
	if n := min(size-len(s.tail), len(p)); n > 0 {
		s.tail, p = append(s.tail, p[:n]...), p[n:]
	}
	for len(p) > 0 {
		n := copy(s.tail[s.next:], p)
		s.next, p = (s.next+n)%size, p[n:]
	}
}

// Take returns the output so far and empties the spool.
func (s *Spool) Take() Output {
	b := append(s.head, s.tail[s.next:]...)
	o := Output{Bytes: append(b, s.tail[:s.next]...), Head: len(s.head), Total: s.total}
	*s = Spool{Limit: s.Limit}
	return o
}

// Output is the output of a program. If Total > len(Bytes), the middle was cut, and Bytes is the
// first Head bytes followed by the last ones.
type Output struct {
	Bytes []byte
	Head  int
	Total int64
}

// Cut returns the number of bytes that were dropped.
func (o Output) Cut() int64 { return o.Total - int64(len(o.Bytes)) }

// Then returns o followed by next. If either was cut, the result counts as cut in its middle.
func (o Output) Then(next Output) Output {
	out := Output{Bytes: append(o.Bytes, next.Bytes...), Head: o.Head, Total: o.Total + next.Total}
	if o.Cut() == 0 {
		out.Head = len(o.Bytes) + next.Head
	}
	return out
}

// Text returns the output as valid UTF-8 with LF line endings. If the middle was cut, a separate
// line says how many bytes are missing.
func (o Output) Text() string {
	if o.Cut() <= 0 {
		return clean(o.Bytes)
	}
	head, tail := trimEnd(o.Bytes[:o.Head]), trimStart(o.Bytes[o.Head:])
	missing := o.Total - int64(len(head)+len(tail))
	mark := fmt.Sprintf("[... %d bytes of output cut ...]\n", missing)
	text := clean(head)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + mark + clean(tail)
}

// trimEnd drops an incomplete character at the end of b.
func trimEnd(b []byte) []byte {
	for i := 1; i <= min(3, len(b)); i++ {
		c := b[len(b)-i]
		if c&0xC0 == 0x80 {
			continue
		}
		if c >= 0xC0 && runeLen(c) > i {
			return b[:len(b)-i]
		}
		break
	}
	return b
}

// trimStart drops the rest of a character at the start of b.
func trimStart(b []byte) []byte {
	for i := 0; i < 3 && len(b) > 0 && b[0]&0xC0 == 0x80; i++ {
		b = b[1:]
	}
	return b
}

func runeLen(first byte) int {
	switch {
	case first >= 0xF0:
		return 4
	case first >= 0xE0:
		return 3
	}
	return 2
}

func clean(b []byte) string {
	return strings.ToValidUTF8(string(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))), "\uFFFD")
}
