package framing

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func encodeFrame(nonce string, seq, pid int, body string) string {
	return encodePiece(nonce, seq, pid, 1, 1, body)
}

func encodePiece(nonce string, seq, pid, number, total int, part string) string {
	return fmt.Sprintf("\x1b]7717;%s;%d;%d;%d;%d;%s\x07", nonce, seq, pid, number, total, base64.StdEncoding.EncodeToString([]byte(part)))
}

// scan feeds stream to a Scanner in chunks of the given size. It returns the output and the bodies
// of the frames.
func scan(nonce, stream string, chunk int) (string, []string) {
	s := &Scanner{}
	s.Expect(nonce)
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
	wrong := encodeFrame("other", 9, 7, `{}`)
	early := encodeFrame("n0", 2, 7, `{"seq":"not new"}`)
	child := encodeFrame("n0", 3, 8, `{"pid":"another"}`)
	cases := []struct {
		name, stream, out string
		frames            []string
	}{
		{"plain", "hello é\n", "hello é\n", nil},
		{"one", "a" + encodeFrame("n0", 1, 7, `{"x":1}`) + "b", "ab", []string{`{"x":1}`}},
		{"two", encodeFrame("n0", 1, 7, `1`) + encodeFrame("n0", 2, 7, `2`), "", []string{"1", "2"}},
		{"wrong nonce", wrong + encodeFrame("n0", 1, 7, `1`), wrong, []string{"1"}},
		{"seq repeats", encodeFrame("n0", 2, 7, `1`) + early, early, []string{"1"}},
		{"other pid", encodeFrame("n0", 2, 7, `1`) + child, child, []string{"1"}},
		{"not base64", "\x1b]7717;n0;1;7;1;1;$$\x07", "\x1b]7717;n0;1;7;1;1;$$\x07", nil},
		{"not json", encodeFrame("n0", 1, 7, `{`), encodeFrame("n0", 1, 7, `{`), nil},
		{"missing field", "\x1b]7717;n0;1;7;1;1\x07", "\x1b]7717;n0;1;7;1;1\x07", nil},
		{"huge numbers", "\x1b]7717;n0;99999999999999999999;7;1;1;MQ==\x07", "\x1b]7717;n0;99999999999999999999;7;1;1;MQ==\x07", nil},
		{"no such process", encodeFrame("n0", 1, 0, `1`), encodeFrame("n0", 1, 0, `1`), nil},
		{"pieces", "a" + encodePiece("n0", 1, 7, 1, 3, `{"x"`) + "b" + encodePiece("n0", 1, 7, 2, 3, `:`) + encodePiece("n0", 1, 7, 3, 3, `1}`) + "c", "abc", []string{`{"x":1}`}},
		{"first piece of another frame before", encodePiece("n0", 1, 7, 1, 2, `{"x"`) + encodeFrame("n0", 1, 7, `1`), "", []string{"1"}},
		{"a piece missing", encodePiece("n0", 1, 7, 1, 3, `{`) + encodePiece("n0", 1, 7, 3, 3, `}`), encodePiece("n0", 1, 7, 3, 3, `}`), nil},
		{"too many pieces", encodePiece("n0", 1, 7, 2, 1, `1`), encodePiece("n0", 1, 7, 2, 1, `1`), nil},
		{"pieces that are not JSON", encodePiece("n0", 1, 7, 1, 2, `{`) + encodePiece("n0", 1, 7, 2, 2, `{`), encodePiece("n0", 1, 7, 2, 2, `{`), nil},
		{"escape in escape", "\x1b]7717;n0;\x1b" + encodeFrame("n0", 1, 7, `1`), "\x1b]7717;n0;\x1b", []string{"1"}},
		{"unfinished", "x\x1b]7717;n0;1;", "x\x1b]7717;n0;1;", nil},
		{"colors", "\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m", nil},
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

func TestScannerLimitsTheSizeOfFrames(t *testing.T) {
	long := "\x1b]7717;n0;1;7;1;1;" + strings.Repeat("A", 2*MaxPiece) + "\x07"
	out, frames := scan("n0", long+encodeFrame("n0", 1, 7, `1`), 4096)
	if out != long || len(frames) != 1 {
		t.Errorf("got %d bytes of output and %d frames, want %d and 1", len(out), len(frames), len(long))
	}
	endless := ""
	for n := range 2 * MaxFrame / 3000 {
		endless += encodePiece("n0", 1, 7, n+1, 1<<20, strings.Repeat(" ", 3000))
	}
	if _, frames = scan("n0", endless+encodeFrame("n0", 1, 7, `1`), 4096); len(frames) != 1 {
		t.Errorf("%d frames after an endless one, want 1", len(frames))
	}
}

// A Scanner passes output on as soon as possible: even with many foreign escape sequences in it, it
// holds back at most one unfinished sequence.
func TestScannerHoldsBackOneSequence(t *testing.T) {
	var s Scanner
	s.Expect("abc")
	chunk := []byte(strings.Repeat("output \x1b[31mred\x1b[0m (Pdb) ", 40) + "\x1b]7717;xyz;1;1;1;")
	fed, out := 0, 0
	for range 2000 {
		fed += len(chunk)
		for rest := chunk; len(rest) > 0; {
			_, rest = s.Next(rest, func(p []byte) { out += len(p) })
		}
		if fed-out > MaxPiece {
			t.Fatalf("%d of %d bytes are held back", fed-out, fed)
		}
	}
}

// A program that has learned the nonce of a command can end that command early, but no later one:
// neither with numbers that leave no room for later frames nor by repeating a frame.
func TestForgedFrameEndsOnlyItsCommand(t *testing.T) {
	s := &Scanner{}
	var out bytes.Buffer
	feed := func(stream string) (bodies []string) {
		for p := []byte(stream); len(p) > 0; {
			var f *Frame
			if f, p = s.Next(p, func(p []byte) { out.Write(p) }); f != nil {
				bodies = append(bodies, string(f.Body))
			}
		}
		return bodies
	}
	s.Expect("one")
	forged := fmt.Sprintf("\x1b]7717;one;%d;7;1;1;MQ==\x07", uint64(math.MaxUint64))
	if got := feed(forged + encodePiece("one", 3, 7, 1, 9, "x")); !slices.Equal(got, []string{"1"}) {
		t.Errorf("forged: %q", got)
	}
	s.Expect("two")
	if got := feed(encodeFrame("one", 2, 7, `"late"`) + forged + encodeFrame("two", 1, 7, `2`)); !slices.Equal(got, []string{"2"}) {
		t.Errorf("the next command: %q", got)
	}
}

func FuzzScanner(f *testing.F) {
	f.Add([]byte("a\x1b]7717;n0;1;7;1;2;"), 3, []byte(`{"x":"é"}`))
	f.Add([]byte(encodeFrame("n0", 1, 7, `1`)), 1, []byte(`2`))
	f.Add([]byte("\xff\x1b\x1b]"), 2, []byte(`"\u0007"`))
	f.Fuzz(func(t *testing.T, noise []byte, chunk int, body []byte) {
		if chunk < 1 || chunk > 1<<16 || bytes.Contains(noise, []byte("Zq")) {
			return
		}
		// The nonce does not occur in the noise, so all of the noise is output.
		stream := string(noise) + encodeFrame("Zq", 5, 7, `{"ok":true}`) + string(noise)
		out, frames := scan("Zq", stream, chunk)
		if want := string(noise) + string(noise); out != want {
			t.Errorf("output %q, want %q", out, want)
		}
		if len(frames) != 1 {
			t.Errorf("frames %q, want one", frames)
		}
		// With an arbitrary body, the scanner neither panics nor loses bytes, unless they are a piece of
		// a frame.
		forged := "\x1b]7717;Zq;" + string(body) + "\x07"
		if bytes.Contains(body, []byte("Zq")) {
			return
		}
		if out, frames = scan("Zq", forged, chunk); len(frames) == 0 && !strings.HasSuffix(forged, out) {
			t.Errorf("the output of the refused frame %q is %q", forged, out)
		}
	})
}
