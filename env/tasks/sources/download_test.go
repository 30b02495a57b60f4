package sources

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// mirror is a server with one file that breaks connections after some bytes.
type mirror struct {
	*httptest.Server
	mu     sync.Mutex
	body   string
	etag   string
	cuts   []int    // bytes after which each response breaks off, in order; -1 for status 503
	linked string   // X-Linked-ETag
	ranges []string // requested ranges
}

func serve(t *testing.T, body string, cuts ...int) *mirror {
	m := &mirror{body: body, etag: `"one"`, cuts: cuts}
	m.Server = httptest.NewServer(http.HandlerFunc(m.answer))
	t.Cleanup(m.Close)
	return m
}

func (m *mirror) answer(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/hub/") {
		w.Header().Set("X-Linked-ETag", m.linked)
		http.Redirect(w, r, "/lies/here", http.StatusFound)
		return
	}
	m.ranges = append(m.ranges, r.Header.Get("Range"))
	w.Header().Set("ETag", m.etag)
	if len(m.cuts) == 0 {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(m.body))
		return
	}
	cut, from := m.cuts[0], 0
	m.cuts = m.cuts[1:]
	if cut < 0 {
		http.Error(w, "later", http.StatusServiceUnavailable)
		return
	}
	if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(m.body)-1, len(m.body)))
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(m.body)-from))
	if from > 0 {
		w.WriteHeader(http.StatusPartialContent)
	}
	_, _ = w.Write([]byte(m.body[from : from+cut])) // less than Content-Length, so the connection breaks
}

func (m *mirror) download(t *testing.T) download {
	return download{URL: m.URL + "/rev1/rows.jsonl", SHA256: schemas.HashBytes([]byte(m.body)), Dir: t.TempDir(), Wait: time.Millisecond}
}

func (d download) expect(t *testing.T, want string) {
	t.Helper()
	name, err := d.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%d bytes, %v; want %d", len(got), err, len(want))
	}
	if left, _ := filepath.Glob(filepath.Join(d.Dir, "*", "*.part*")); len(left) > 0 {
		t.Errorf("temporary files remain: %v", left)
	}
}

var digits = strings.Repeat("0123456789", 1000)

func TestDownloadsResume(t *testing.T) {
	m := serve(t, digits, 4000, -1, 0, 2500)
	d := m.download(t)
	var all sync.WaitGroup
	for range 4 { // one of them downloads, the others wait
		all.Go(func() {
			name, err := d.get(context.Background())
			got, rerr := os.ReadFile(name)
			if err != nil || rerr != nil || string(got) != digits {
				t.Errorf("%v, %v: %d bytes", err, rerr, len(got))
			}
		})
	}
	all.Wait()
	if want := []string{"", "bytes=4000-", "bytes=4000-", "bytes=4000-", "bytes=6500-"}; !slices.Equal(m.ranges, want) {
		t.Errorf("asked for %q, want %q", m.ranges, want)
	}
	d.expect(t, digits) // from the cache
	if len(m.ranges) != 5 {
		t.Errorf("asked again: %q", m.ranges)
	}
}

// A later process resumes the download unless the file has changed on the server.
func TestLaterProcessesResumeADownload(t *testing.T) {
	for name, changed := range map[string]bool{"the same": false, "another": true} {
		t.Run(name, func(t *testing.T) {
			m := serve(t, digits, append([]int{3000}, slices.Repeat([]int{0}, downloadTries)...)...)
			d := m.download(t)
			d.SHA256 = ""
			if _, err := d.get(t.Context()); err == nil || !strings.Contains(err.Error(), "3000 bytes are kept, and the same command continues the download") {
				t.Fatalf("%v", err)
			}
			m.mu.Lock()
			m.cuts, m.ranges = nil, nil
			if changed {
				m.body, m.etag = strings.ToUpper(strings.Repeat("abcdefghij", 1000)), `"two"`
			}
			want := m.body
			m.mu.Unlock()
			d.expect(t, want)
			if !slices.Equal(m.ranges, []string{"bytes=3000-"}) {
				t.Errorf("asked for %q", m.ranges)
			}
		})
	}
}

func TestWrongDownloadsAreRefusedAndDeleted(t *testing.T) {
	m := serve(t, digits)
	d := m.download(t)
	d.SHA256 = strings.Repeat("0", 64)
	if _, err := d.get(t.Context()); err == nil || !strings.Contains(err.Error(), "another revision, or was changed") || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(d.Dir, "*", "rows*")); len(left) > 0 {
		t.Errorf("a wrong file remains: %v", left)
	}
	// If no hash is configured, the server's hash is checked.
	d.SHA256, d.URL = "", m.URL+"/hub/rows.jsonl"
	m.linked = `"` + strings.Repeat("1", 64) + `"`
	if _, err := d.get(t.Context()); err == nil || !strings.Contains(err.Error(), "want 1111") {
		t.Error(err)
	}
	m.linked = `"` + schemas.HashBytes([]byte(digits)) + `"`
	d.expect(t, digits)
	// The error about a damaged file in the cache names the file.
	d.SHA256 = schemas.HashBytes([]byte(digits))
	name, err := d.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.get(t.Context()); err == nil || !strings.Contains(err.Error(), "delete "+name) {
		t.Error(err)
	}
}

func TestDownloadErrors(t *testing.T) {
	m := serve(t, digits)
	d := m.download(t)
	for url, want := range map[string]string{
		"":                 `"" is not an address`,
		m.URL:              "is not an address",
		"/tmp/rows.jsonl":  "is not an address",
		m.URL + "/a/b\x7f": "is not an address",
	} {
		d.URL = url
		if _, err := d.get(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", url, err)
		}
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	d.URL = gone.URL + "/rows.jsonl"
	if _, err := d.get(t.Context()); err == nil || !strings.Contains(err.Error(), "the server answers 404") {
		t.Error(err)
	}
	gone.Close()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	src, err := env.Sources.Build("swebench", map[string]any{"url": d.URL}, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = src.Tasks(t.Context()); err == nil || !strings.Contains(err.Error(), "may be offline: or name the file on this machine with tasks.with.path") {
		t.Error(err)
	}
}

// A caller that waits for another caller's download can be canceled.
func TestWaitingForADownloadEndsWithItsContext(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-release
	}))
	defer slow.Close()
	d := download{URL: slow.URL + "/rows.jsonl", Dir: t.TempDir(), Wait: time.Millisecond}
	first := make(chan error)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		_, err := d.get(ctx)
		first <- err
	}()
	<-begun
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := d.get(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	stop()
	close(release)
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
