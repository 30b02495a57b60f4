package tape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// noise returns text that hardly compresses, always the same for a seed.
func noise(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]byte, n)
	for i := range out {
		out[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"[r.IntN(64)]
	}
	return string(out)
}

// request returns the body of turn n. The conversation grows in the middle of the body.
func request(conversation string, n int) []byte {
	messages := []string{conversation + noise(99, 3000)}
	for i := range n {
		messages = append(messages, noise(uint64(i), 1500))
	}
	body, err := json.Marshal(map[string]any{"max_tokens": 5, "messages": messages, "model": "m", "tools": noise(7, 6000)})
	if err != nil {
		panic(err)
	}
	return body
}

func exchange(body []byte, answer string) llms.Exchange {
	return llms.Exchange{At: time.Unix(1, 0).UTC(), Request: body, Response: []byte(answer), Status: 200}
}

// writeEpisode writes an episode and returns the path and size of its file.
func writeEpisode(t *testing.T, turns int) (string, int64) {
	t.Helper()
	path := Path(t.TempDir(), "abcdef")
	w := New(path, nil)
	for n := range turns {
		if err := w.Record(exchange(request("", n), fmt.Sprint("answer", n))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	return path, info.Size()
}

// The size of a file grows linearly with the number of turns, not quadratically.
func TestSizeIsLinear(t *testing.T) {
	_, thirty := writeEpisode(t, 30)
	path, sixty := writeEpisode(t, 60)
	sent := 0
	for n := range 60 {
		sent += len(request("", n))
	}
	t.Logf("60 turns: %d bytes sent, %d recorded; 30 turns: %d", sent, sixty, thirty)
	if sixty > thirty*22/10 {
		t.Errorf("30 turns take %d bytes, 60 take %d", thirty, sixty)
	}
	if last := int64(len(request("", 59))); sixty > last*2 {
		t.Errorf("%d bytes recorded, but the last request has %d", sixty, last)
	}
	all, err := Read(path, func(string) bool { return true })
	if err != nil || len(all) != 60 {
		t.Fatalf("%d exchanges, %v", len(all), err)
	}
	for n, ex := range all {
		if !bytes.Equal(ex.Request, request("", n)) || string(ex.Response) != fmt.Sprint("answer", n) {
			t.Fatalf("turn %d differs from what was recorded", n)
		}
	}
}

// Conversations alternate, attempts fail, and a shorter request follows a longer one.
func TestReadReturnsWhatWasRecorded(t *testing.T) {
	path := Path(t.TempDir(), "abcdef")
	sent := []llms.Exchange{
		exchange(request("a", 3), "one"), exchange(request("b", 0), "two"), exchange(request("a", 4), "three"), exchange(request("b", 1), "three"),
		{At: time.Unix(2, 0).UTC(), Request: request("a", 5), Response: []byte("<html>"), Status: 502, Failure: "server"},
		{At: time.Unix(3, 0).UTC(), Request: request("a", 5), Failure: "timeout"},
		exchange(request("a", 5), ""), exchange([]byte("{}"), "x"), exchange([]byte(""), "x"), exchange(request("a", 1), "y"),
	}
	for _, ex := range sent {
		w := New(path, nil) // a new Writer each time, as in a new process
		if err := w.Record(ex); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(path, func(string) bool { return true })
	if err != nil || len(got) != len(sent) {
		t.Fatalf("%d of %d exchanges, %v", len(got), len(sent), err)
	}
	for i, want := range sent {
		g := got[i]
		if !bytes.Equal(g.Request, want.Request) || !bytes.Equal(g.Response, want.Response) || (g.Response == nil) != (want.Response == nil) ||
			g.Status != want.Status || g.Failure != want.Failure || !g.At.Equal(want.At) {
			t.Errorf("exchange %d: %+v", i, g)
		}
	}
	attempts, err := Read(path, func(sha string) bool { return sha == schemas.HashBytes(request("a", 5)) })
	if err != nil || len(attempts) != 3 {
		t.Errorf("%d attempts of one request, error %v", len(attempts), err)
	}
}

// Wherever a file is cut off, Read returns the complete records before that, and a new
// Writer can append.
func TestTruncatedFile(t *testing.T) {
	path, size := writeEpisode(t, 3)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := int64(0); cut < size; cut += 97 {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := Read(path, func(string) bool { return true })
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		w := New(path, nil)
		if err := w.Record(exchange(request("", 9), "more")); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		_ = w.Close()
		after, err := Read(path, func(string) bool { return true })
		if err != nil || len(after) != len(before)+1 || string(after[len(after)-1].Response) != "more" {
			t.Fatalf("cut at %d: %d exchanges, then %d, %v", cut, len(before), len(after), err)
		}
	}
}

func TestDamageAndMissingFiles(t *testing.T) {
	if got, err := Read(filepath.Join(t.TempDir(), "none"), nil); got != nil || err != nil {
		t.Errorf("no file: %v, %v", got, err)
	}
	path, _ := writeEpisode(t, 2)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(whole, []byte(`"prefix":`), []byte(`"prefix":1`), 1)
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path, func(string) bool { return true }); err == nil || !strings.Contains(err.Error(), "record 1") {
		t.Errorf("damaged: %v", err)
	}
	if err := New(path, nil).Record(exchange([]byte("{}"), "x")); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("appending to a damaged file: %v", err)
	}
}

// A full disk is an error, and no part of the record counts.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &Writer{path: "/dev/full", clean: strings.Clone, file: full}
	err = w.Record(exchange(request("", 0), "x"))
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if w.size != 0 || w.records != 0 || len(w.recent) != 0 {
		t.Errorf("%d bytes, %d records counted", w.size, w.records)
	}
	_ = w.Close()
}

// If a record does not fit, the part that was written is removed. Otherwise the end of that part
// would follow the next, shorter record.
func TestPartialRecordIsRemoved(t *testing.T) {
	path, size := writeEpisode(t, 1)
	w := New(path, nil)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limit := before
	limit.Cur = uint64(size) + 2000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	err := w.Record(exchange([]byte(noise(5, 5000)), "x"))
	if back := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); back != nil {
		t.Fatal(back)
	}
	if !errors.Is(err, syscall.EFBIG) {
		t.Fatalf("got %v", err)
	}
	if err := errors.Join(w.Record(exchange([]byte("{}"), "y")), w.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path, func(string) bool { return true })
	if err != nil || len(got) != 2 || string(got[1].Response) != "y" {
		t.Errorf("%d exchanges, %v", len(got), err)
	}
}

// Secrets are masked, but the hash is still the hash of the original bytes.
func TestSecretsAreMasked(t *testing.T) {
	path := Path(t.TempDir(), "abcdef")
	w := New(path, strings.NewReplacer(`secret\"1`, "***", "secret-2", "***").Replace)
	body := []byte(`{"a":"secret\"1 and secret-2"}`)
	for range 2 {
		if err := w.Record(exchange(body, "you said secret-2")); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close()
	got, err := Read(path, func(sha string) bool { return sha == schemas.HashBytes(body) })
	if err != nil || len(got) != 2 || string(got[1].Request) != `{"a":"*** and ***"}` || string(got[1].Response) != "you said ***" {
		t.Errorf("%d exchanges: %+v, %v", len(got), got, err)
	}
}

// Reading a frame allocates memory for its contents, not for the size that it claims, and
// refuses contents that are longer than maxBody.
func TestFramesAreBounded(t *testing.T) {
	const megabyte = "\x50" // a window descriptor
	falseSize := []byte("\x28\xb5\x2f\xfd\x80" + megabyte + "\x00\x00\x00\x03" + "\x01\x00\x00")
	zeros := []byte("\x28\xb5\x2f\xfd\x00" + megabyte)
	zeros = append(zeros, bytes.Repeat([]byte("\x02\x00\x10\x00"), maxBody>>17)...) // each block repeats a byte 128 Ki times
	bomb := append(bytes.Clone(zeros), "\x02\x00\x10\x00\x01\x00\x00"...)
	zeros = append(zeros, "\x01\x00\x00"...)

	r := newReader(nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if body, err := r.decompress(falseSize); err == nil {
		t.Errorf("read %d bytes from a frame without contents", len(body))
	}
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 8<<20 {
		t.Errorf("allocated %d bytes for a frame of %d", taken, len(falseSize))
	}
	if _, err := r.decompress(bomb); !errors.Is(err, errTooLong) {
		t.Errorf("contents longer than maxBody: %v", err)
	}
	if body, err := r.decompress(zeros); err != nil || len(body) != maxBody {
		t.Errorf("contents as long as maxBody: %d bytes, %v", len(body), err)
	}
	if body, err := r.decompress(compress([]byte(noise(3, 5*window)))); err != nil || string(body) != noise(3, 5*window) {
		t.Errorf("a body of several windows: %d bytes, %v", len(body), err)
	}
}

func FuzzRead(f *testing.F) {
	for _, bodies := range [][]string{{""}, {"a", "aa"}} {
		w := New(filepath.Join(f.TempDir(), "x"), nil)
		for _, body := range bodies {
			if err := w.Record(exchange([]byte(body), "b")); err != nil {
				f.Fatal(err)
			}
		}
		whole, err := os.ReadFile(w.path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(whole)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r := newReader(bytes.NewReader(file))
		for range 1000 {
			if _, err := r.next(); err != nil {
				return
			}
			if r.end > int64(len(file)) {
				t.Fatalf("read %d bytes of %d", r.end, len(file))
			}
		}
	})
}

// FuzzFrame decompresses damaged frames, which FuzzRead rejects by their hash. The content of a
// frame must not be longer than maxBody.
func FuzzFrame(f *testing.F) {
	f.Add(compress([]byte("abcabcabc")))
	f.Add([]byte("\x28\xb5\x2f\xfd\x00\x50\x02\x00\x10\x00\x01\x00\x00"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		body, err := newReader(nil).decompress(frame)
		if err == nil && len(body) > maxBody {
			t.Fatalf("%d bytes", len(body))
		}
	})
}
