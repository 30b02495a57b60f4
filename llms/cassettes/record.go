package cassettes

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"
	"unicode/utf8"
)

// maxBody bounds a request, and what is kept of an answer.
const maxBody = 64 << 20

// Recorder is a reverse proxy that writes down what passes. Safe for concurrent
// use.
type Recorder struct {
	proxy   *httputil.ReverseProxy
	shelf   shelf
	secrets secrets
	running sync.WaitGroup

	mu     sync.Mutex
	count  int
	failed error
}

// NewRecorder records into a directory, which is made. Paths are passed on as
// they are to the upstream's host. transport nil: the default.
func NewRecorder(dir, upstream string, transport http.RoundTripper, known ...string) (*Recorder, error) {
	u, err := url.Parse(upstream)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("upstream is %q: give a full http or https URL such as https://api.openai.com/v1", upstream)
	}
	if u.User != nil {
		return nil, fmt.Errorf("the upstream URL must not hold credentials: clients send their key, which is passed on")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of cassettes: %w", err)
	}
	r := &Recorder{shelf: shelf{dir: dir}}
	r.secrets.add(known...) // beside what the clients' headers hold
	if transport == nil {
		plain := http.DefaultTransport.(*http.Transport).Clone()
		plain.DisableCompression = true
		transport = plain
	}
	r.proxy = &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = u.Scheme, u.Host, u.Host
			p.Out.Header.Del("Accept-Encoding") // a packed answer cannot be searched for secrets
		},
		ModifyResponse: func(resp *http.Response) error { return r.tee(resp) },
		ErrorHandler:   r.noAnswer,
		ErrorLog:       log.New(io.Discard, "", 0), // it is written into the cassette
	}
	return r, nil
}

type takeKey struct{}

// take is an exchange under way.
type take struct {
	Exchange
	begun time.Time
	raw   [][]byte // chunks as they came
	size  int
	ended bool
	req   *http.Request
}

// ServeHTTP implements http.Handler.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.running.Add(1)
	defer r.running.Done()
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		http.Error(w, `{"error":{"message":"reading the request: it is too long or broke off"}}`, http.StatusRequestEntityTooLarge)
		return
	}
	r.secrets.learn(req)
	t := &take{begun: time.Now(), req: req}
	masked := r.secrets.mask(bytes.Clone(body))
	t.Exchange = Exchange{
		Version: version, At: t.begun.UTC().Format(time.RFC3339Nano), Method: req.Method,
		Path: string(r.secrets.mask([]byte(req.URL.RequestURI()))), Session: string(r.secrets.mask([]byte(sessionOf(req.Header, masked)))),
	}
	t.Hash = HashRequest(t.Method, t.Path, masked)
	if json.Valid(masked) {
		t.Request = masked
	} else if len(masked) > 0 {
		t.Request, _ = json.Marshal(string(masked)) // a text always can be
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.ContentLength = int64(len(body))
	defer func() {
		if !t.ended { // the proxy has given up while it copied
			t.End = "left"
			r.keep(t)
		}
	}()
	r.proxy.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), takeKey{}, t)))
}

// tee makes the answer's body leave its chunks with the exchange.
func (r *Recorder) tee(resp *http.Response) error {
	t, _ := resp.Request.Context().Value(takeKey{}).(*take)
	if resp.Header.Get("Content-Encoding") == "gzip" {
		plain, err := gzip.NewReader(resp.Body)
		if err != nil {
			return fmt.Errorf("unpacking the answer: %w", err)
		}
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength = -1
		resp.Body = struct {
			io.Reader
			io.Closer
		}{plain, resp.Body}
	}
	for _, c := range resp.Cookies() {
		r.secrets.add(c.Value)
	}
	t.Status, t.Headers = resp.StatusCode, http.Header{}
	for name, values := range resp.Header {
		if secretHeader.MatchString(name) {
			continue
		}
		for _, v := range values {
			t.Headers.Add(name, string(r.secrets.mask([]byte(v))))
		}
	}
	for _, name := range []string{"Content-Length", "Date", "Connection"} {
		t.Headers.Del(name)
	}
	resp.Body = &teeBody{ReadCloser: resp.Body, take: t, recorder: r}
	return nil
}

// noAnswer tells the client, and writes down, that the upstream did not answer.
func (r *Recorder) noAnswer(w http.ResponseWriter, req *http.Request, err error) {
	t, _ := req.Context().Value(takeKey{}).(*take)
	if req.Context().Err() != nil {
		t.End = "left"
		r.keep(t)
		return
	}
	body, _ := json.Marshal(map[string]any{"error": map[string]any{ // maps of texts always can be
		"code": "upstream_unreachable", "type": "server_error", "message": string(r.secrets.mask([]byte("the upstream did not answer: " + err.Error()))),
	}})
	t.Status, t.Headers = http.StatusBadGateway, http.Header{"Content-Type": {"application/json"}}
	t.raw, t.Chunks = [][]byte{body}, []Chunk{{Millis: time.Since(t.begun).Milliseconds()}}
	r.keep(t)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(t.Status)
	_, _ = w.Write(body)
}

type teeBody struct {
	io.ReadCloser
	take     *take
	recorder *Recorder
}

// Read keeps what passes; the exchange is written before its reader hears of the end.
func (b *teeBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	t := b.take
	if n > 0 && t.size < maxBody {
		t.size += n
		t.raw = append(t.raw, bytes.Clone(p[:n]))
		t.Chunks = append(t.Chunks, Chunk{Millis: time.Since(t.begun).Milliseconds()})
	}
	switch {
	case err == io.EOF:
		b.recorder.keep(t)
	case err != nil && !t.ended:
		t.End = "cut"
		if t.req.Context().Err() != nil {
			t.End = "left"
		}
		b.recorder.keep(t)
	}
	return n, err
}

// keep writes an exchange that has ended, once.
func (r *Recorder) keep(t *take) {
	if t.ended {
		return
	}
	t.ended = true
	all := r.secrets.mask(bytes.Join(t.raw, nil))
	for i, raw := range t.raw {
		part := all[:len(raw)]
		all = all[len(raw):]
		if utf8.Valid(part) {
			t.Chunks[i].Text = string(part)
		} else {
			t.Chunks[i].Bytes = part
		}
	}
	err := r.shelf.add(t.Exchange)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	if r.failed == nil {
		r.failed = err
	}
}

// Wait returns when no request is under way: how many were recorded, and the
// first failure to write one.
func (r *Recorder) Wait() (int, error) {
	r.running.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count, r.failed
}
