package framing

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSpoolKeepsHeadAndTail(t *testing.T) {
	var all []byte
	for i := range 1000 {
		all = append(all, byte('a'+i%26))
	}
	for limit := range 40 {
		for _, chunk := range []int{1, 3, 7, 39, 1000} {
			for _, size := range []int{0, 1, 5, 38, 39, 40, 41, 977} {
				s := Spool{Limit: limit}
				for p := all[:size]; len(p) > 0; {
					n := min(chunk, len(p))
					s.Add(p[:n])
					p = p[n:]
				}
				o := s.Take()
				if o.Total != int64(size) || len(o.Bytes) != min(size, limit) {
					t.Fatalf("limit %d size %d: kept %d of %d", limit, size, len(o.Bytes), o.Total)
				}
				head, tail := o.Bytes[:o.Head], o.Bytes[o.Head:]
				if !bytes.HasPrefix(all[:size], head) || !bytes.HasSuffix(all[:size], tail) {
					t.Fatalf("limit %d chunk %d size %d: kept %q + %q", limit, chunk, size, head, tail)
				}
			}
		}
	}
}

func TestOutputText(t *testing.T) {
	s := Spool{Limit: 100}
	s.Add([]byte("a\r\nb\xff\n"))
	if got, want := s.Take().Text(), "a\nb\uFFFD\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for limit := 10; limit < 30; limit++ {
		s = Spool{Limit: limit}
		s.Add([]byte(strings.Repeat("é漢😀", 20)))
		o := s.Take()
		got := o.Text()
		if !utf8.ValidString(got) || strings.Contains(got, "\uFFFD") {
			t.Errorf("limit %d: a character was cut in two: %q", limit, got)
		}
		if !strings.Contains(got, "bytes of output cut ...]\n") {
			t.Errorf("limit %d: no mark: %q", limit, got)
		}
	}
}
