package framing

import (
	"bytes"
	"testing"
)

// BenchmarkScan measures how fast output passes through a Scanner to a Spool: plain output, and
// output full of escape sequences that are not frames.
func BenchmarkScan(b *testing.B) {
	for name, line := range map[string]string{
		"plain":   "a line of ordinary output, as programs print it by the thousand\n",
		"escapes": "\x1b[31mred\x1b[0m and \x1b]0;a title\x07 and \x1b]7717;wrong;1;1;1;1;e30=\x07\n",
	} {
		b.Run(name, func(b *testing.B) {
			chunk := bytes.Repeat([]byte(line), (64<<10)/len(line))
			b.SetBytes(int64(len(chunk)))
			s, out := &Scanner{}, Spool{Limit: DefaultLimit}
			s.Expect("NONCE")
			for b.Loop() {
				if f, _ := s.Next(chunk, out.Add); f != nil {
					b.Fatal("Next returned a frame")
				}
			}
		})
	}
}
