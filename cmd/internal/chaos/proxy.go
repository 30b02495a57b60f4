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

// proxy injects faults in front of an S3 server. At planned creations of objects it refuses the
// request, discards the answer (and closes the connection at once or when the client gives up), or
// cuts the body and kills the sender.
type proxy struct {
	URL      string
	upstream *httputil.ReverseProxy
	web      *http.Server
	kill     func(client string) (found bool, err error) // kills the process with that address

	mu         sync.Mutex
	created    int
	due        map[int]Kind // by number of the creation
	publishing bool         // every third creation fails, and due has no effect
	struck     map[Kind]int
	failures   []error
}

// checkReachable returns a *RefusedError if the S3 server does not answer. Behind the proxy,
// that would look like a temporary failure.
func checkReachable(ctx context.Context, endpoint string) error {
	to, err := url.Parse(endpoint)
	if err != nil {
		return err // impossible: the command has checked the URL
	}
	port := cmp.Or(to.Port(), map[string]string{"http": "80", "https": "443"}[to.Scheme])
	conn, err := (&net.Dialer{Timeout: 30 * time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(to.Hostname(), port))
	if err != nil {
		return &RefusedError{Code: 7, Err: fmt.Errorf("reaching the S3 server %s: %w", endpoint, err), Try: "start it, or give its address with --s3-endpoint"}
	}
	return conn.Close()
}

// newProxy starts a proxy in front of endpoint.
func newProxy(endpoint string, faults []storeFault, kill func(client string) (bool, error)) (*proxy, error) {
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
		r.Out.Host = r.In.Host // the signature of the request covers the host
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
		p.upstream.ServeHTTP(discardResponse{}, r)
		panic(http.ErrAbortHandler)
	case StoreSilence:
		p.upstream.ServeHTTP(discardResponse{}, r)
		<-r.Context().Done() // wait until the client gives up
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
	case p.publishing && p.created%6 == 0:
		return StoreError
	case p.publishing && p.created%3 == 0:
		return StoreLost
	case p.publishing:
		return ""
	case kind == StoreError || kind == StoreLost || kind == StoreSilence:
		p.struck[kind]++
	}
	return kind
}

var errTorn = errors.New("the proxy cut the body")

// tear forwards half of the object and kills the sender. If it cannot find the sender, it
// postpones the fault to a later creation.
func (p *proxy) tear(r *http.Request) {
	half := r.Clone(r.Context())
	half.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, r.ContentLength/2), errorReader{}))
	cut := &httputil.ReverseProxy{ErrorLog: p.upstream.ErrorLog, Rewrite: p.upstream.Rewrite, ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}}
	cut.ServeHTTP(discardResponse{}, half)
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

// discardResponse is a http.ResponseWriter that discards the response.
type discardResponse struct{}

func (discardResponse) Header() http.Header         { return http.Header{} }
func (discardResponse) Write(b []byte) (int, error) { return len(b), nil }
func (discardResponse) WriteHeader(int)             {}

// errorReader is a reader that fails.
type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errTorn }

// startPublishing makes every third creation fail from now on. It is called after the batch is
// complete and before its dataset is published.
func (p *proxy) startPublishing() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.publishing = true
}

// addResults adds the number of faults that have struck to counts, by kind. It returns the
// errors of injecting faults.
func (p *proxy) addResults(counts map[Kind]int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, n := range p.struck {
		counts[k] += n
	}
	return errors.Join(p.failures...)
}
