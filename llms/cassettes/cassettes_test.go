package cassettes_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/llms/cassettes"
)

const key = "sk-not/to-be-\"seen"

// upstream is a server that includes the client's key in its answers. The path selects the
// kind of answer.
func upstream(t *testing.T) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flush := http.NewResponseController(w).Flush
		http.SetCookie(w, &http.Cookie{Name: "id", Value: "cookie-value"})
		w.Header().Set("X-Request-Id", "r1")
		w.Header().Set("X-Auth-Token", key)
		switch r.URL.Path {
		case "/v1/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, "packed ", key)
			_ = z.Close()
			return
		case "/v1/cut":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "half")
			return
		case "/v1/stall":
			fmt.Fprint(w, "begun")
			_ = flush()
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(201)
		fmt.Fprint(w, "data: ", key, " cookie-value\n\n")
	}))
	t.Cleanup(srv.Close)
	return srv
}

type answer struct {
	status int
	body   string
	header http.Header
	err    error // from reading the body
}

func do(t *testing.T, base, path, session, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Cookie", "mine=other-cookie")
	if session != "" {
		req.Header.Set("X-Session-ID", session)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(raw), resp.Header, err}
}

func newRecorder(t *testing.T, dir, to string) (*cassettes.Recorder, *httptest.Server) {
	t.Helper()
	r, err := cassettes.NewRecorder(dir, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(r)
	t.Cleanup(srv.Close)
	return r, srv
}

func newPlayer(t *testing.T, dir, mode string, speed float64, up http.Handler) (*cassettes.Player, *httptest.Server) {
	t.Helper()
	sessions, cuts, err := cassettes.Load(dir)
	if err != nil || len(cuts) > 0 {
		t.Fatal(err, cuts)
	}
	p, err := cassettes.NewPlayer(sessions, mode, speed, up)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(p)
	t.Cleanup(srv.Close)
	return p, srv
}

func ask(texts ...string) string {
	var list []string
	for i, text := range texts {
		list = append(list, fmt.Sprintf(`{"role":%q,"content":%q}`, []string{"user", "assistant"}[i%2], text))
	}
	return `{"model":"m","user":"volatile","messages":[` + strings.Join(list, ",") + `]}`
}

func readCassettes(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, raw...)
	}
	return string(all)
}

// A client gets the same answers through the recorder as without it. The cassettes contain
// the bytes, chunks and times of the answers, and no secrets.
func TestRecorderKeepsBytesAndMasksSecrets(t *testing.T) {
	dir := t.TempDir()
	up := upstream(t)
	r, srv := newRecorder(t, dir, up.URL+"/v1")
	direct, recorded := do(t, up.URL, "/v1/x?api_key=query-secret", "s/1", ask("my key: "+key)), do(t, srv.URL, "/v1/x?api_key=query-secret", "s/1", ask("my key: "+key))
	if recorded.body != direct.body || recorded.status != 201 || recorded.header.Get("X-Request-Id") != "r1" {
		t.Errorf("%+v, directly %+v", recorded, direct)
	}
	if got := do(t, srv.URL, "/v1/gzip", "s2", ask("a")); got.body != "packed "+key {
		t.Errorf("%+v", got)
	}
	if got := do(t, srv.URL, "/v1/cut", "s2", ask("a", "b", "c")); got.err == nil || got.body != "half" {
		t.Errorf("%+v", got)
	}
	if n, err := r.Wait(); n != 3 || err != nil {
		t.Errorf("%d recorded: %v", n, err)
	}
	text := readCassettes(t, dir)
	for _, secret := range []string{"sk-not", `be-\"seen`, "cookie-value", "other-cookie", "query-secret", "Set-Cookie", "Authorization", "X-Auth-Token"} {
		if strings.Contains(text, secret) {
			t.Errorf("the cassettes contain %s:\n%s", secret, text)
		}
	}
	for _, want := range []string{`my key: ***`, `"X-Request-Id":["r1"]`, `"end":"cut"`, "packed ***", `"session":"s/1"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "s2.jsonl")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

// Each mode gets equal, changed and surplus requests.
func TestPlaybackModes(t *testing.T) {
	dir := t.TempDir()
	up := upstream(t)
	_, srv := newRecorder(t, dir, up.URL)
	for _, body := range []string{ask("a"), ask("a", "b", "c")} {
		do(t, srv.URL, "/v1/x", "s1", body)
	}
	do(t, srv.URL, "/v1/cut", "s2", ask("z"))
	do(t, srv.URL, "/v1/x", "", ask("no id"))

	p, play := newPlayer(t, dir, cassettes.Strict, 0, nil)
	if got := do(t, play.URL, "/v1/x", "s1", strings.Replace(ask("a"), "volatile", "other", 1)); got.status != 201 || !strings.HasPrefix(got.body, "data: ***") || got.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("the same: %+v", got)
	}
	if got := do(t, play.URL, "/v1/x", "s1", ask("a", "b", "changed")); got.status != 400 || !strings.Contains(got.body, `message 2 differs:\n  - {\"content\":\"c\"`) {
		t.Errorf("changed: %+v", got)
	}
	if got := do(t, play.URL, "/v1/x", "s1", strings.Replace(ask("a", "b", "c"), `"m"`, `"n"`, 1)); !strings.Contains(got.body, `another field differs: model\n  - \"m\"\n  + \"n\"`) {
		t.Errorf("another model: %+v", got)
	}
	do(t, play.URL, "/v1/x", "s1", ask("a", "b", "c"))
	if got := do(t, play.URL, "/v1/x", "s1", ask("a", "b", "c", "d", "e")); !strings.Contains(got.body, "has 2 recorded exchanges, one more was asked for") {
		t.Errorf("surplus: %+v", got)
	}
	if got := do(t, play.URL, "/v1/cut", "renamed", ask("z")); got.err == nil || got.body != "half" {
		t.Errorf("a session with another id and the same first request: %+v", got)
	}
	if got := do(t, play.URL, "/v1/x", "", ask("no id")); got.status != 201 {
		t.Errorf("without an id: %+v", got)
	}
	if got := do(t, play.URL, "/v1/x", "unknown", ask("?")); !strings.Contains(got.body, "was not recorded, and no recorded session begins with") || len(p.Problems()) != 4 {
		t.Errorf("unknown: %+v; %q", got, p.Problems())
	}

	_, play = newPlayer(t, dir, cassettes.Lenient, 0, nil)
	if got := do(t, play.URL, "/v1/x", "s1", ask("quite another")); got.status != 201 {
		t.Errorf("lenient: %+v", got)
	}

	passedDir := t.TempDir()
	r, err := cassettes.NewRecorder(passedDir, up.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, play = newPlayer(t, dir, cassettes.Passthrough, 0, r)
	do(t, play.URL, "/v1/x", "s1", ask("a", "b", "c")) // out of order, but recorded
	do(t, play.URL, "/v1/x", "s1", ask("new"))
	if played, passed := p.Wait(); played != 1 || passed != 1 || !strings.Contains(readCassettes(t, passedDir), `"new"`) {
		t.Errorf("passthrough: %d played, %d passed", played, passed)
	}
}

// chunkTransport answers every request with its chunks.
type chunkTransport []string

func (p chunkTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	var readers []io.Reader
	for _, text := range p {
		readers = append(readers, strings.NewReader(text))
	}
	return &http.Response{Request: r, StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(io.MultiReader(readers...)), ContentLength: -1}, nil
}

// A secret that is split between two chunks is masked, and the boundaries of chunks stay the
// same, even within a character.
func TestChunksKeepTheirBoundaries(t *testing.T) {
	dir := t.TempDir()
	r, err := cassettes.NewRecorder(dir, "http://upstream/v1", chunkTransport{"data: " + key[:7], key[7:] + " \xc3", "\xbc"})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(r)
	defer srv.Close()
	if got := do(t, srv.URL, "/v1/x", "s", ask("a")); got.body != "data: "+key+" ü" {
		t.Errorf("%+v", got)
	}
	sessions, _, err := cassettes.Load(dir)
	if err != nil || len(sessions["s"]) != 1 {
		t.Fatal(err, sessions)
	}
	chunks := sessions["s"][0].Chunks
	if len(chunks) != 3 || chunks[0].Text != "data: *******" || string(chunks[1].Bytes) != "*********** \xc3" || string(chunks[2].Bytes) != "\xbc" {
		t.Errorf("%+v", chunks)
	}
	_, play := newPlayer(t, dir, cassettes.Strict, 0, nil)
	if got := do(t, play.URL, "/v1/x", "s", ask("a")); got.body != "data: ****************** ü" {
		t.Errorf("%+v", got)
	}
}

// At speed 1, chunks arrive at their recorded times and are not joined.
func TestChunksArriveAtTheirTimes(t *testing.T) {
	ex := cassettes.Exchange{Version: 1, Session: "s", Method: "POST", Path: "/x", Status: 200, Hash: cassettes.HashRequest("POST", "/x", []byte("{}")),
		Chunks: []cassettes.Chunk{{Millis: 0, Text: "now"}, {Millis: 3_600_000, Text: "in an hour"}}}
	p, err := cassettes.NewPlayer(map[string][]cassettes.Exchange{"s": {ex}}, cassettes.Strict, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(p)
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/x", strings.NewReader("{}"))
	req.Header.Set("X-Session-ID", "s")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 64)
	if n, err := resp.Body.Read(first); string(first[:n]) != "now" {
		t.Errorf("%q %v", first[:n], err)
	}
	cancel()
	_ = resp.Body.Close()
	p.Wait() // the player stops when the client disconnects
}

// The recorder records that a client disconnected, and continues to work.
func TestClientDisconnects(t *testing.T) {
	dir := t.TempDir()
	r, srv := newRecorder(t, dir, upstream(t).URL)
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/v1/stall", strings.NewReader(ask("a")))
	req.Header.Set("X-Session-ID", "s")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = resp.Body.Close()
	if n, err := r.Wait(); n != 1 || err != nil || !strings.Contains(readCassettes(t, dir), `"end":"left"`) {
		t.Errorf("%d: %v\n%s", n, err, readCassettes(t, dir))
	}
	// The upstream server does not exist.
	gone := httptest.NewServer(nil)
	gone.Close()
	_, srv = newRecorder(t, t.TempDir(), gone.URL)
	if got := do(t, srv.URL, "/v1/x", "s", ask("a")); got.status != 502 || !strings.Contains(got.body, "did not answer") {
		t.Errorf("%+v", got)
	}
}

// A cassette that is cut off anywhere is read up to the last complete line, and the next
// recording begins on a new line.
func TestTruncatedCassette(t *testing.T) {
	dir := t.TempDir()
	up := upstream(t).URL
	_, srv := newRecorder(t, dir, up)
	for _, text := range []string{"a", "b", "c"} {
		do(t, srv.URL, "/v1/x", "s", ask(text))
	}
	file := filepath.Join(dir, "s.jsonl")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		list, cut, err := cassettes.Read("s", bytes.NewReader(whole[:n]))
		lines := bytes.Count(whole[:n], []byte("\n"))
		onEnd := n == 0 || whole[n-1] == '\n'
		if err != nil || len(list) != lines || (cut == nil) != onEnd || cut != nil && cut.Line != lines+1 {
			t.Fatalf("%d bytes: %d read, cut %v, %v", n, len(list), cut, err)
		}
	}
	if err := os.Truncate(file, int64(len(whole)-10)); err != nil {
		t.Fatal(err)
	}
	_, srv = newRecorder(t, dir, up)
	do(t, srv.URL, "/v1/x", "s", ask("d"))
	sessions, cuts, err := cassettes.Load(dir)
	if err != nil || len(cuts) != 0 || len(sessions["s"]) != 3 || !strings.Contains(string(sessions["s"][2].Request), `"d"`) {
		t.Errorf("%v %v %+v", err, cuts, sessions)
	}
	if _, _, err := cassettes.Read("s", strings.NewReader(`{"v":9,"method":"GET","hash":"x"}`+"\n")); err == nil || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("%v", err)
	}
}

func FuzzCassette(f *testing.F) {
	f.Add([]byte(`{"v":1,"session":"s","method":"POST","path":"/x","hash":"h","request":{"messages":[1]},"status":200,"chunks":[{"ms":-1,"text":"a"},{"bytes":"/w=="}]}` + "\n{"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, _, err := cassettes.Read("f", bytes.NewReader(raw))
		if err != nil {
			return
		}
		p, err := cassettes.NewPlayer(map[string][]cassettes.Exchange{"s": list}, cassettes.Lenient, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range list {
			req := httptest.NewRequest(http.MethodPost, "/x", strings.NewReader("{}"))
			req.Header.Set("X-Session-ID", "s")
			func() {
				defer func() {
					if got := recover(); got != nil && got != http.ErrAbortHandler {
						panic(got)
					}
				}()
				p.ServeHTTP(httptest.NewRecorder(), req)
			}()
		}
	})
}
