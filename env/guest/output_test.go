package guest

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"
	"time"
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

// A reader that gets no processor time until long after the program's end still reads all that
// the program wrote, although a background process keeps the pipe open.
func TestALateReaderLosesNoOutput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	want := bytes.Repeat([]byte("output "), 5000)
	if _, err := w.Write(want); err != nil {
		t.Fatal(err)
	}
	var got []byte
	o := newOutputReader(r, func(p []byte) { got = append(got, p...) })
	if err := r.SetReadDeadline(time.Now().Add(-time.Minute)); err != nil { // as end does
		t.Fatal(err)
	}
	go o.run()
	<-o.done
	if !bytes.Equal(got, want) {
		t.Errorf("got %d bytes of %d", len(got), len(want))
	}
	if _, err := w.WriteString("later"); err != nil { // the reader still empties the pipe
		t.Error(err)
	}
}
