package stores_test

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/stores"
)

func open(t *testing.T, uri string, cfg stores.S3Config) sinks.Store {
	t.Helper()
	s, err := stores.Open(t.Context(), uri, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFileStore(t *testing.T) {
	sinktest.RunStore(t, func(t *testing.T) sinks.Store {
		return open(t, filepath.Join(t.TempDir(), "not", "there", "yet"), stores.S3Config{})
	})
}

func TestS3StoreAgainstFake(t *testing.T) {
	sinktest.RunStore(t, func(t *testing.T) sinks.Store {
		return open(t, "s3://traces/some/prefix", stores.S3Config{Endpoint: sinktest.Fake(t, nil)})
	})
}

func TestS3StoreAgainstServer(t *testing.T) {
	for _, checksum := range []string{"auto", "off"} {
		t.Run(checksum, func(t *testing.T) {
			sinktest.RunStore(t, func(t *testing.T) sinks.Store {
				return open(t, "s3://traces/some/prefix", stores.S3Config{Endpoint: sinktest.Serve(t).URL, Checksum: checksum})
			})
		})
	}
}

func TestS3MultipartUploadIsCreateOnly(t *testing.T) {
	s := open(t, "s3://traces", stores.S3Config{Endpoint: sinktest.Serve(t).URL})
	path := filepath.Join(t.TempDir(), "big")
	for i, fill := range []byte{'a', 'b'} {
		body := make([]byte, 20<<20) // above the multipart threshold
		for j := range body {
			body[j] = fill
		}
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
		err := s.CreateFile(t.Context(), "big", path)
		if i == 0 && err != nil || i == 1 && !errors.Is(err, sinks.ErrExists) {
			t.Errorf("creation %d: %v", i, err)
		}
	}
	got, err := s.Get(t.Context(), "big")
	if err != nil || len(got) != 20<<20 || got[0] != 'a' {
		t.Errorf("the first object did not survive: %d bytes, %v", len(got), err)
	}
}

func TestS3WrongSecretIsDeniedWithoutRetries(t *testing.T) {
	srv := sinktest.Serve(t)
	sinktest.Env(t, sinktest.AccessKey, "wrong")
	s := open(t, "s3://traces", stores.S3Config{Endpoint: srv.URL})
	if err := s.Create(t.Context(), "k", []byte("x")); !errors.Is(err, sinks.ErrDenied) {
		t.Errorf("create: %v, want ErrDenied", err)
	}
	if err := s.Probe(t.Context()); !errors.Is(err, sinks.ErrDenied) {
		t.Errorf("probe: %v, want ErrDenied", err)
	}
}

func TestForbiddenIsFinal(t *testing.T) {
	var calls atomic.Int32
	url := sinktest.Fake(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`<Error><Code>AccessDenied</Code><Message>no</Message></Error>`))
		})
	})
	s := open(t, "s3://traces", stores.S3Config{Endpoint: url})
	err := s.Create(t.Context(), "k", []byte("x"))
	if !errors.Is(err, sinks.ErrDenied) || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("got %v, want ErrDenied with a hint", err)
	}
	if calls.Load() != 1 {
		t.Errorf("%d requests with refused credentials, want 1", calls.Load())
	}
}

// A request to a server with an untrusted certificate is not repeated.
func TestUntrustedServerIsExplained(t *testing.T) {
	sinktest.Env(t, "a", "b")
	var tries atomic.Int32
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			tries.Add(1)
		}
	}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	s := open(t, "s3://traces", stores.S3Config{Endpoint: srv.URL})
	if _, err := s.Get(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "AWS_CA_BUNDLE") || tries.Load() != 1 {
		t.Errorf("%v after %d connections", err, tries.Load())
	}
}

func TestMissingCredentials(t *testing.T) {
	url := sinktest.Fake(t, nil)
	sinktest.Env(t, "", "")
	_, err := stores.Open(t.Context(), "s3://traces", stores.S3Config{Endpoint: url})
	if !errors.Is(err, sinks.ErrDenied) || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("got %v, want ErrDenied with a hint", err)
	}
}

func TestS3MissingBucketIsNamed(t *testing.T) {
	endpoints := map[string]func(t *testing.T) string{
		"fake":   func(t *testing.T) string { return sinktest.Fake(t, nil) },
		"server": func(t *testing.T) string { return sinktest.Serve(t).URL },
	}
	for name, endpoint := range endpoints {
		t.Run(name, func(t *testing.T) {
			s := open(t, "s3://no-such-bucket/p", stores.S3Config{Endpoint: endpoint(t)})
			listErr := error(nil)
			for _, err := range s.List(t.Context(), "") {
				listErr = err
			}
			for op, err := range map[string]error{"list": listErr, "create": s.Create(t.Context(), "k", nil)} {
				if err == nil || !strings.Contains(err.Error(), `bucket "no-such-bucket" does not exist`) {
					t.Errorf("%s: %v", op, err)
				}
			}
		})
	}
}

// A server that ignores a condition overwrites silently. The probe must detect this
// and name the condition.
func TestProbeFindsUnsafeServer(t *testing.T) {
	for _, condition := range []string{"If-None-Match", "If-Match"} {
		t.Run(condition, func(t *testing.T) {
			url := sinktest.Fake(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					r.Header.Del(condition)
					next.ServeHTTP(w, r)
				})
			})
			s := open(t, "s3://traces", stores.S3Config{Endpoint: url})
			if err := s.Probe(t.Context()); !errors.Is(err, sinks.ErrUnsafe) || !strings.HasSuffix(err.Error(), "honors "+condition) {
				t.Errorf("got %v, want ErrUnsafe", err)
			}
		})
	}
}

// A server that rejects unknown requests is asked once, and the error explains what
// the server must support.
func TestUnknownRequestsAreExplained(t *testing.T) {
	var puts atomic.Int32
	url := sinktest.Fake(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPut {
				next.ServeHTTP(w, r)
				return
			}
			puts.Add(1)
			w.WriteHeader(http.StatusNotImplemented)
			_, _ = w.Write([]byte(`<Error><Code>NotImplemented</Code><Message>no such header here</Message></Error>`))
		})
	})
	s := open(t, "s3://traces", stores.S3Config{Endpoint: url})
	err := s.Probe(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no such header here") || !strings.Contains(err.Error(), "supports conditional writes") || !strings.Contains(err.Error(), "s3.checksum: off") {
		t.Errorf("got %v, want an error that names the missing feature", err)
	}
	if puts.Load() != 1 {
		t.Errorf("%d puts, want 1", puts.Load())
	}
}

// If a put succeeds and its answer is lost, the server refuses the SDK's retry.
// Create still reports success.
func TestLostAnswerIsRecognized(t *testing.T) {
	var lost atomic.Bool
	url := sinktest.Fake(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut && lost.CompareAndSwap(false, true) {
				next.ServeHTTP(&discard{h: http.Header{}}, r)
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	s := open(t, "s3://traces", stores.S3Config{Endpoint: url})
	if err := s.Create(t.Context(), "k", []byte("mine")); err != nil {
		t.Errorf("the first attempt was not recognized: %v", err)
	}
	if err := s.Create(t.Context(), "k", []byte("mine")); !errors.Is(err, sinks.ErrExists) {
		t.Errorf("a later call with equal bytes: %v, want ErrExists", err)
	}
}

type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

func TestBadURIs(t *testing.T) {
	sinktest.Env(t, "a", "b")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for uri, want := range map[string]string{
		file:                    "not a directory: name a directory",
		"ftp://x/y":             `unknown store "ftp": choose one of file, s3`,
		"s3://":                 "the path or bucket is missing",
		"":                      "the path or bucket is missing",
		"s3://bucket/../../etc": "clean relative path",
	} {
		if _, err := stores.Open(t.Context(), uri, stores.S3Config{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", uri, err, want)
		}
	}
	if _, err := stores.Open(t.Context(), "s3://b", stores.S3Config{Checksum: "crc"}); err == nil {
		t.Error("checksum mode crc was accepted")
	}
	for _, endpoint := range []string{"127.0.0.1:7070", "localhost:7070", "ftp://h", "https://"} {
		if _, err := stores.Open(t.Context(), "s3://b", stores.S3Config{Endpoint: endpoint}); err == nil || !strings.Contains(err.Error(), "give a URL") {
			t.Errorf("endpoint %q: %v", endpoint, err)
		}
	}
}
