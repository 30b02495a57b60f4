package stores_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/stores"
)

// faulty returns a store behind a proxy that injects faults, and the same store without the proxy.
func faulty(t *testing.T) (s, direct sinks.Store, f *sinktest.Faults) {
	t.Helper()
	return faultyAt(t, sinktest.Serve(t).URL)
}

func faultyAt(t *testing.T, url string) (s, direct sinks.Store, f *sinktest.Faults) {
	t.Helper()
	f = sinktest.NewFaults(t, url)
	s = open(t, "s3://traces/p", stores.S3Config{Endpoint: f.URL, MaxBackoff: 100 * time.Millisecond, Silence: 2 * time.Second})
	return s, open(t, "s3://traces/p", stores.S3Config{Endpoint: url}), f
}

// faultCase is an operation, the faults to inject and the expected object afterwards.
type faultCase struct {
	kind   string
	faults []sinktest.Fault
	exists bool // the object exists before
	do     func(t *testing.T, s sinks.Store, key string) error
	want   []byte // nil: no object
}

var faultBody = bytes.Repeat([]byte("body "), 100_000)

// faultCases returns a case for every operation. file, which contains big, is uploaded.
func faultCases(file string, big []byte) []faultCase {
	upload := func(t *testing.T, s sinks.Store, key string) error { return s.CreateFile(t.Context(), key, file) }
	return []faultCase{
		{"PUT", []sinktest.Fault{sinktest.Unavailable, sinktest.Internal, sinktest.Lost, sinktest.Silent}, false, func(t *testing.T, s sinks.Store, key string) error {
			return s.Create(t.Context(), key, faultBody)
		}, faultBody},
		{"PUT", []sinktest.Fault{sinktest.Lost}, true, func(t *testing.T, s sinks.Store, key string) error {
			return s.Swap(t.Context(), key, faultBody, []byte("swapped"))
		}, []byte("swapped")},
		{"GET", []sinktest.Fault{sinktest.Unavailable, sinktest.Lost, sinktest.Torn, sinktest.HalfSilent}, true, func(t *testing.T, s sinks.Store, key string) error {
			got, err := s.Get(t.Context(), key)
			if err == nil && !bytes.Equal(got, faultBody) {
				t.Errorf("read %d bytes, which differ from the object", len(got))
			}
			return err
		}, faultBody},
		{"HEAD", []sinktest.Fault{sinktest.Unavailable, sinktest.Lost}, true, func(t *testing.T, s sinks.Store, key string) error {
			_, err := s.Head(t.Context(), key)
			return err
		}, faultBody},
		{"LIST", []sinktest.Fault{sinktest.Unavailable, sinktest.Torn, sinktest.HalfSilent}, true, func(t *testing.T, s sinks.Store, key string) error {
			for o, err := range s.List(t.Context(), key) {
				if err != nil {
					return err
				}
				if o.Key == key && o.Size == int64(len(faultBody)) {
					return nil
				}
			}
			return errors.New("the object is not listed")
		}, faultBody},
		{"COPY", []sinktest.Fault{sinktest.Unavailable, sinktest.Lost}, true, func(t *testing.T, s sinks.Store, key string) error {
			return s.Copy(t.Context(), key, key+"-copy")
		}, faultBody},
		{"BEGIN", []sinktest.Fault{sinktest.Unavailable}, false, upload, big},
		{"PART", []sinktest.Fault{sinktest.Unavailable, sinktest.Lost}, false, upload, big},
		{"COMPLETE", []sinktest.Fault{sinktest.Internal, sinktest.Lost}, false, upload, big},
		{"DELETE", []sinktest.Fault{sinktest.Unavailable, sinktest.Lost}, true, func(t *testing.T, s sinks.Store, key string) error {
			return s.Delete(t.Context(), key)
		}, nil},
	}
}

// Each fault hits two consecutive requests. The operation still succeeds, and takes
// effect once.
func TestS3FaultsAreRetried(t *testing.T) {
	s, direct, faults := faulty(t)
	big := bytes.Repeat([]byte("0123456789abcdef"), 20<<16) // 20 MiB: three parts
	file := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(file, big, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range faultCases(file, big) {
		for _, fault := range c.faults {
			t.Run(c.kind+" "+string(fault), func(t *testing.T) {
				key := c.kind + "/" + filepath.Base(t.Name())
				if c.exists {
					if err := direct.Create(t.Context(), key, faultBody); err != nil {
						t.Fatal(err)
					}
				}
				before := faults.Count(c.kind)
				faults.Plan(c.kind, fault, 1, 2)
				if err := c.do(t, s, key); err != nil {
					t.Fatal(err)
				}
				if n := faults.Count(c.kind) - before; n < 3 && c.kind != "DELETE" {
					t.Errorf("%d requests: the fault did not occur", n)
				}
				got, err := direct.Get(t.Context(), key)
				if c.want == nil && errors.Is(err, sinks.ErrNotFound) {
					return
				}
				if err != nil || !bytes.Equal(got, c.want) {
					t.Errorf("the object holds %d bytes, want %d: %v", len(got), len(c.want), err)
				}
			})
		}
	}
}

// If a fault is permanent, the operation fails after a bounded number of requests.
func TestS3FaultsThatPersistAreReported(t *testing.T) {
	s, _, faults := faulty(t)
	faults.Plan("PUT", sinktest.Unavailable, 1, 1000)
	if err := s.Create(t.Context(), "k", nil); err == nil || errors.Is(err, sinks.ErrExists) {
		t.Errorf("create: %v", err)
	}
	if n := faults.Count("PUT"); n != 8 {
		t.Errorf("%d puts, want 8: only one layer may repeat requests", n)
	}
	faults.Plan("LIST", sinktest.Torn, 1, 1000)
	var last error
	for _, err := range s.List(t.Context(), "") {
		last = err
	}
	if last == nil || faults.Count("LIST") != 8 {
		t.Errorf("list: %v after %d requests, want an error after 8", last, faults.Count("LIST"))
	}
}

// A read that continues after a fault never mixes the content of two versions of an
// object.
func TestS3ResumedReadNeverMixes(t *testing.T) { testResumedRead(t, sinktest.Serve(t).URL) }

// TestResumedReadNeverMixesAgainstFake is TestS3ResumedReadNeverMixes with the fake server,
// which is always available. The handler adds If-Match for reads, which the fake does not
// support.
func TestResumedReadNeverMixesAgainstFake(t *testing.T) {
	testResumedRead(t, sinktest.Fake(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if want := r.Header.Get("If-Match"); r.Method == http.MethodGet && want != "" {
				look := r.Clone(r.Context())
				look.Method = http.MethodHead
				look.Header.Del("Range")
				now := httptest.NewRecorder()
				if next.ServeHTTP(now, look); now.Header().Get("ETag") != want {
					w.WriteHeader(http.StatusPreconditionFailed)
					_, _ = io.WriteString(w, `<Error><Code>PreconditionFailed</Code></Error>`)
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}))
}

func testResumedRead(t *testing.T, url string) {
	s, direct, faults := faultyAt(t, url)
	old, other := bytes.Repeat([]byte("a"), 1<<20), bytes.Repeat([]byte("b"), 1<<20)
	if err := direct.Create(t.Context(), "k", old); err != nil {
		t.Fatal(err)
	}
	faults.Plan("GET", sinktest.Torn, 1, 1)
	r, err := s.Open(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := direct.Swap(t.Context(), "k", old, other); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, sinks.ErrChanged) {
		t.Errorf("got %v, want ErrChanged", err)
	}
}

// A writer that dies during a multipart upload leaves no object, and its parts can be
// found and removed.
func TestS3TornUploads(t *testing.T) {
	s, direct, faults := faulty(t)
	file := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(file, make([]byte, 20<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	faults.Plan("PART", sinktest.Unavailable, 2, 1000)
	faults.Plan("DELETE", sinktest.Unavailable, 1, 1000) // so that the writer cannot abort the upload
	if err := s.CreateFile(t.Context(), "data/big", file); err == nil {
		t.Fatal("an upload without its parts succeeded")
	}
	if _, err := direct.Head(t.Context(), "data/big"); !errors.Is(err, sinks.ErrNotFound) {
		t.Errorf("an unfinished upload is visible as an object: %v", err)
	}
	torn, err := direct.(sinks.Sweeper).UnfinishedWrites(t.Context())
	if err != nil || len(torn) != 1 || torn[0].Key != "data/big" || torn[0].Since.IsZero() {
		t.Fatalf("torn = %+v, %v", torn, err)
	}
	for range 2 {
		if err := torn[0].Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if torn, err = direct.(sinks.Sweeper).UnfinishedWrites(t.Context()); err != nil || len(torn) != 0 {
		t.Errorf("unfinished uploads that remain: %+v, %v", torn, err)
	}
}

func TestTornFiles(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, stores.S3Config{})
	if err := s.Create(t.Context(), "a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := s.Swap(t.Context(), "a", []byte("x"), []byte("y")); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(root, ".tracesmith-tmp", "123")
	if err := os.WriteFile(half, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	torn, err := s.(sinks.Sweeper).UnfinishedWrites(t.Context())
	if err != nil || len(torn) != 1 || torn[0].Name != half {
		t.Fatalf("torn = %+v, %v", torn, err)
	}
	if err := torn[0].Remove(t.Context()); err != nil {
		t.Error(err)
	}
}
