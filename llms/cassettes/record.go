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

// maxBody limits a request and the recorded part of an answer, in bytes.
const maxBody = 64 << 20

// Recorder is a reverse proxy that records the exchanges. It is safe for concurrent use.
type Recorder struct {
	proxy   *httputil.ReverseProxy
	writer  writer
	secrets secrets
	running sync.WaitGroup

	mu     sync.Mutex
	count  int
	failed error
}

// NewRecorder returns a Recorder that writes to a directory, which it creates if needed. It
// sends requests to the upstream's host without changing their paths, and ignores the path of
// the upstream URL. A nil transport means the default.
func NewRecorder(dir, upstream string, transport http.RoundTripper) (*Recorder, error) {
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
	r := &Recorder{writer: writer{dir: dir}}
	if transport == nil {
		plain := http.DefaultTransport.(*http.Transport).Clone()
		plain.DisableCompression = true
		transport = plain
	}
	r.proxy = &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = u.Scheme, u.Host, u.Host
			p.Out.Header.Del("Accept-Encoding") // secrets cannot be found in a compressed answer
		},
		ModifyResponse: func(resp *http.Response) error { return r.recordAnswer(resp) },
		ErrorHandler:   r.handleError,
		ErrorLog:       log.New(io.Discard, "", 0), // handleError records the errors
	}
	return r, nil
}

type exchangeKey struct{}

// runningExchange is an exchange that is being recorded.
type runningExchange struct {
	Exchange
	begun time.Time
	raw   [][]byte // chunks as received
	size  int
	saved bool
	req   *http.Request
}

// ServeHTTP implements http.Handler.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.running.Add(1)
	defer r.running.Done()
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		http.Error(w, `{"error":{"message":"reading the request: it is too long or incomplete"}}`, http.StatusRequestEntityTooLarge)
		return
	}
	r.secrets.learn(req)
	t := &runningExchange{begun: time.Now(), req: req}
	masked := r.secrets.mask(bytes.Clone(body))
	t.Exchange = Exchange{
		Version: version, At: t.begun.UTC().Format(time.RFC3339Nano), Method: req.Method,
		Path: string(r.secrets.mask([]byte(req.URL.RequestURI()))), Session: string(r.secrets.mask([]byte(sessionOf(req.Header, masked)))),
	}
	t.Hash = HashRequest(t.Method, t.Path, masked)
	if json.Valid(masked) {
		t.Request = masked
	} else if len(masked) > 0 {
		t.Request, _ = json.Marshal(string(masked)) // a string can always be encoded
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.ContentLength = int64(len(body))
	defer func() {
		if !t.saved { // the proxy stopped copying the answer
			t.End = clientLeft
			r.save(t)
		}
	}()
	r.proxy.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), exchangeKey{}, t)))
}

// recordAnswer records the status and headers of an answer, and wraps its body so that
// reading the body records the chunks.
func (r *Recorder) recordAnswer(resp *http.Response) error {
	t, _ := resp.Request.Context().Value(exchangeKey{}).(*runningExchange)
	if resp.Header.Get("Content-Encoding") == "gzip" {
		plain, err := gzip.NewReader(resp.Body)
		if err != nil {
			return fmt.Errorf("decompressing the answer: %w", err)
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
	resp.Body = &teeBody{ReadCloser: resp.Body, exchange: t, recorder: r}
	return nil
}

// handleError sends and records an error if the upstream does not answer.
func (r *Recorder) handleError(w http.ResponseWriter, req *http.Request, err error) {
	t, _ := req.Context().Value(exchangeKey{}).(*runningExchange)
	if req.Context().Err() != nil {
		t.End = clientLeft
		r.save(t)
		return
	}
	body, _ := json.Marshal(map[string]any{"error": map[string]any{ // cannot fail
		"code": "upstream_unreachable", "type": "server_error", "message": string(r.secrets.mask([]byte("the upstream did not answer: " + err.Error()))),
	}})
	t.Status, t.Headers = http.StatusBadGateway, http.Header{"Content-Type": {"application/json"}}
	t.raw, t.Chunks = [][]byte{body}, []Chunk{{Millis: time.Since(t.begun).Milliseconds()}}
	r.save(t)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(t.Status)
	_, _ = w.Write(body)
}

// teeBody is the body of an answer, which records its chunks.
type teeBody struct {
	io.ReadCloser
	exchange *runningExchange
	recorder *Recorder
}

// Read records the chunk that it returns. It saves the exchange before it returns io.EOF or an error.
func (b *teeBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	t := b.exchange
	if n > 0 && t.size < maxBody {
		t.size += n
		t.raw = append(t.raw, bytes.Clone(p[:n]))
		t.Chunks = append(t.Chunks, Chunk{Millis: time.Since(t.begun).Milliseconds()})
	}
	switch {
	case err == io.EOF:
		b.recorder.save(t)
	case err != nil && !t.saved:
		t.End = answerCut
		if t.req.Context().Err() != nil {
			t.End = clientLeft
		}
		b.recorder.save(t)
	}
	return n, err
}

// save masks an exchange and writes it. Later calls for the same exchange do nothing.
func (r *Recorder) save(t *runningExchange) {
	if t.saved {
		return
	}
	t.saved = true
	all := r.secrets.mask(bytes.Join(t.raw, nil)) // masking keeps the length
	for i, raw := range t.raw {
		part := all[:len(raw)]
		all = all[len(raw):]
		if utf8.Valid(part) {
			t.Chunks[i].Text = string(part)
		} else {
			t.Chunks[i].Bytes = part
		}
	}
	err := r.writer.add(t.Exchange)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	if r.failed == nil {
		r.failed = err
	}
}

// Wait waits for running requests. It returns how many exchanges were recorded, and the
// first error of writing one.
func (r *Recorder) Wait() (int, error) {
	r.running.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count, r.failed
}
