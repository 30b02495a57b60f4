package guest

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestCaptureKeepsBothEnds(t *testing.T) {
	for range 2000 {
		c := &capture{max: 1 + rand.Int64N(40)}
		var all []byte
		for range rand.IntN(12) {
			p := make([]byte, rand.IntN(30))
			for i := range p {
				p[i] = byte(len(all) + i)
			}
			all = append(all, p...)
			if n, err := c.Write(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
		}
		want, head := all, len(all)
		if max := int(c.max); len(all) > max {
			head = max / 2
			want = append(bytes.Clone(all[:head]), all[len(all)-(max-head):]...)
		}
		got, gotHead := c.bytes()
		if !bytes.Equal(got, want) || gotHead != head || c.total != int64(len(all)) {
			t.Fatalf("max %d, %d bytes: got %v head %d total %d, want %v head %d", c.max, len(all), got, gotHead, c.total, want, head)
		}
	}
}
