package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// proxy injects faults in front of an S3 server: at counted creations it refuses the
// request, loses or withholds the answer, or cuts the body and kills the sender.
type proxy struct {
	URL      string
	upstream *httputil.ReverseProxy
	web      *http.Server
	kill     func(asker string) (found bool, err error)

	mu       sync.Mutex
	created  int
	due      map[int]Kind // by the count of creations
	steady   bool         // every third creation fails, and no process dies
	struck   map[Kind]int
	failures []error
}

// reach refuses a store that does not answer: behind the proxy it would look like a
// temporary failure.
func reach(ctx context.Context, endpoint string) error {
	to, err := url.Parse(endpoint)
	if err != nil {
		return err // impossible: the flag was checked
	}
	port := cmp.Or(to.Port(), map[string]string{"http": "80", "https": "443"}[to.Scheme])
	conn, err := (&net.Dialer{Timeout: 30 * time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(to.Hostname(), port))
	if err != nil {
		return &RefusedError{Code: 7, Err: fmt.Errorf("reaching the S3 server %s: %w", endpoint, err), Try: "start it, or give its address with --s3-endpoint"}
	}
	return conn.Close()
}

// newProxy starts a proxy in front of endpoint.
func newProxy(endpoint string, faults []storeFault, kill func(asker string) (bool, error)) (*proxy, error) {
	to, err := url.Parse(endpoint)
	if err != nil || to.Host == "" {
		return nil, fmt.Errorf("the endpoint %q is not a URL", endpoint)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the proxy of the store: %w", err)
	}
	quiet := log.New(io.Discard, "", 0)
	p := &proxy{URL: "http://" + l.Addr().String(), kill: kill, due: map[int]Kind{}, struck: map[Kind]int{}}
	for _, f := range faults {
		p.due[f.At] = f.Kind
	}
	p.upstream = &httputil.ReverseProxy{ErrorLog: quiet, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // signatures cover it
	}}
	p.web = &http.Server{Handler: p, ErrorLog: quiet, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = p.web.Serve(l) }() // ends with close
	return p, nil
}

func (p *proxy) close() { _ = p.web.Close() }

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch kind := p.next(r); kind {
	case StoreError:
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "<Error><Code>SlowDown</Code><Message>planned</Message></Error>")
	case StoreLost:
		p.upstream.ServeHTTP(discard{}, r)
		panic(http.ErrAbortHandler)
	case StoreSilence:
		p.upstream.ServeHTTP(discard{}, r)
		<-r.Context().Done() // the client gives up first
		panic(http.ErrAbortHandler)
	case StoreTorn:
		p.tear(r)
	default:
		p.upstream.ServeHTTP(w, r)
	}
}

// next counts a creation and returns its fault, if any.
func (p *proxy) next(r *http.Request) Kind {
	if r.Method != http.MethodPut || r.Header.Get("If-None-Match") != "*" {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.created++
	kind := p.due[p.created]
	switch {
	case p.steady && p.created%6 == 0:
		return StoreError
	case p.steady && p.created%3 == 0:
		return StoreLost
	case p.steady:
		return ""
	case kind == StoreError || kind == StoreLost || kind == StoreSilence:
		p.struck[kind]++
	}
	return kind
}

var errHalf = errors.New("half of the object is enough")

// tear forwards half of the object and kills the sender. If it does not find the sender,
// it tears the next creation.
func (p *proxy) tear(r *http.Request) {
	half := r.Clone(r.Context())
	half.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, r.ContentLength/2), broken{}))
	cut := &httputil.ReverseProxy{ErrorLog: p.upstream.ErrorLog, Rewrite: p.upstream.Rewrite, ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}}
	cut.ServeHTTP(discard{}, half)
	found, err := p.kill(r.RemoteAddr)
	p.mu.Lock()
	switch {
	case err != nil:
		p.failures = append(p.failures, fmt.Errorf("injecting a fault of kind %s: %w", StoreTorn, err))
	case found:
		p.struck[StoreTorn]++
	default:
		at := p.created + 1
		for p.due[at] != "" {
			at++
		}
		p.due[at] = StoreTorn
	}
	p.mu.Unlock()
	panic(http.ErrAbortHandler)
}

// discard swallows an answer.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errHalf }

// batchOver makes every third creation of a publication fail.
func (p *proxy) batchOver() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steady = true
}

// results adds the faults that struck to into.
func (p *proxy) results(into map[Kind]int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, n := range p.struck {
		into[k] += n
	}
	return errors.Join(p.failures...)
}
