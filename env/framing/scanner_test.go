package framing

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func encode(nonce string, seq, pid int, body string) string {
	return fmt.Sprintf("\x1b]7717;%s;%d;%d;%s\x07", nonce, seq, pid, base64.StdEncoding.EncodeToString([]byte(body)))
}

// scan feeds stream in chunks of the given size and returns output and bodies.
func scan(nonce, stream string, chunk int) (string, []string) {
	s := NewScanner(nonce)
	var out bytes.Buffer
	text := func(p []byte) { out.Write(p) }
	var bodies []string
	for b := []byte(stream); len(b) > 0; {
		n := min(chunk, len(b))
		rest := b[:n]
		b = b[n:]
		for len(rest) > 0 {
			var f *Frame
			if f, rest = s.Next(rest, text); f != nil {
				bodies = append(bodies, string(f.Body))
			}
		}
	}
	s.Flush(text)
	return out.String(), bodies
}

func TestScannerSplitsOutputFromFrames(t *testing.T) {
	wrong := encode("other", 9, 7, `{}`)
	early := encode("n0", 2, 7, `{"seq":"not new"}`)
	child := encode("n0", 3, 8, `{"pid":"another"}`)
	cases := []struct {
		name, stream, out string
		frames            []string
	}{
		{"plain", "hello é\n", "hello é\n", nil},
		{"one", "a" + encode("n0", 1, 7, `{"x":1}`) + "b", "ab", []string{`{"x":1}`}},
		{"two", encode("n0", 1, 7, `1`) + encode("n0", 2, 7, `2`), "", []string{"1", "2"}},
		{"wrong nonce", wrong + encode("n0", 1, 7, `1`), wrong, []string{"1"}},
		{"seq repeats", encode("n0", 2, 7, `1`) + early, early, []string{"1"}},
		{"other pid", encode("n0", 2, 7, `1`) + child, child, []string{"1"}},
		{"not base64", "\x1b]7717;n0;1;7;$$\x07", "\x1b]7717;n0;1;7;$$\x07", nil},
		{"not json", encode("n0", 1, 7, `{`), encode("n0", 1, 7, `{`), nil},
		{"missing field", "\x1b]7717;n0;1;7\x07", "\x1b]7717;n0;1;7\x07", nil},
		{"huge numbers", "\x1b]7717;n0;99999999999999999999;7;MQ==\x07", "\x1b]7717;n0;99999999999999999999;7;MQ==\x07", nil},
		{"escape in escape", "\x1b]7717;n0;\x1b" + encode("n0", 1, 7, `1`), "\x1b]7717;n0;\x1b", []string{"1"}},
		{"unfinished", "x\x1b]7717;n0;1;", "x\x1b]7717;n0;1;", nil},
		{"colours", "\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for chunk := 1; chunk <= len(c.stream)+1; chunk++ {
				out, frames := scan("n0", c.stream, chunk)
				if out != c.out {
					t.Fatalf("chunk %d: output %q, want %q", chunk, out, c.out)
				}
				if d := cmp.Diff(c.frames, frames); d != "" {
					t.Fatalf("chunk %d: frames (-want +got):\n%s", chunk, d)
				}
			}
		})
	}
}

func TestScannerBoundsAFrame(t *testing.T) {
	long := "\x1b]7717;n0;1;7;" + strings.Repeat("A", 2*MaxFrame) + "\x07"
	out, frames := scan("n0", long+encode("n0", 1, 7, `1`), 4096)
	if out != long || len(frames) != 1 {
		t.Errorf("got %d bytes of output and %d frames, want %d and 1", len(out), len(frames), len(long))
	}
}

func FuzzScanner(f *testing.F) {
	f.Add([]byte("a\x1b]7717;n0;"), 3, []byte(`{"x":"é"}`))
	f.Add([]byte(encode("n0", 1, 7, `1`)), 1, []byte(`2`))
	f.Add([]byte("\xff\x1b\x1b]"), 2, []byte(`"\u0007"`))
	f.Fuzz(func(t *testing.T, noise []byte, chunk int, body []byte) {
		if chunk < 1 || chunk > 1<<16 || bytes.Contains(noise, []byte("Zq")) {
			return
		}
		// The nonce never occurs in the noise: all of it is output.
		stream := string(noise) + encode("Zq", 5, 7, `{"ok":true}`) + string(noise)
		out, frames := scan("Zq", stream, chunk)
		if want := string(noise) + string(noise); out != want {
			t.Errorf("output %q, want %q", out, want)
		}
		if len(frames) != 1 {
			t.Errorf("frames %q, want one", frames)
		}
		// Arbitrary bodies neither panic nor lose bytes.
		forged := "\x1b]7717;Zq;" + string(body) + "\x07"
		if out, frames = scan("Zq", forged, chunk); len(frames) == 0 && out != forged {
			t.Errorf("refused frame %q came out as %q", forged, out)
		}
	})
}
