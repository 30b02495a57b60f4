package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// httpLink is a server at an address. Every request, redirects and event streams
// included, goes to the configured scheme and host, through no proxy, and only to
// addresses that the configuration allows; the check is made on the address that
// is dialled, so that a name cannot point elsewhere later.
type httpLink struct {
	sdk.Transport
	base      *url.URL
	headers   http.Header
	inner     *http.Transport
	arrived   atomic.Int64
	elsewhere atomic.Pointer[url.URL] // a place the server pointed to and nobody went
	life      context.Context         // of every request
	end       context.CancelFunc
}

var (
	errElsewhere = errors.New("pointed elsewhere")
	errPrivate   = errors.New("is a loopback or private address: set allow_private: true to reach it")
)

func newHTTPLink(cfg Config, headers http.Header) (*httpLink, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, errors.New("url: not an http(s) address")
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if !cfg.AllowPrivate {
		dialer.Control = func(_, address string, _ syscall.RawConn) error { return public(address) }
	}
	l := &httpLink{base: base, headers: headers, inner: &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10,
	}}
	l.life, l.end = context.WithCancel(context.Background())
	client := &http.Client{Transport: l}
	if cfg.SSE {
		l.Transport = &sdk.SSEClientTransport{Endpoint: cfg.URL, HTTPClient: client, MaxEventSize: maxMessage}
	} else {
		l.Transport = &sdk.StreamableClientTransport{Endpoint: cfg.URL, HTTPClient: client, MaxEventSize: maxMessage, MaxRetries: 1}
	}
	return l, nil
}

func (l *httpLink) heard() int64 { return l.arrived.Load() }

// said implements link: where the server pointed. A stream that ends at the same
// moment may hide the error that told it.
func (l *httpLink) said() string {
	if u := l.elsewhere.Load(); u != nil {
		return fmt.Sprintf("the server points to %s://%s, another place than the configured one: not followed", u.Scheme, u.Host)
	}
	return ""
}

// cut implements link.
func (l *httpLink) cut() {
	l.end()
	l.inner.CloseIdleConnections()
}

// Connect implements sdk.Transport. The old transport's event stream lives as
// long as the request that opened it, which must not be the handshake's.
func (l *httpLink) Connect(ctx context.Context) (sdk.Connection, error) {
	return l.Transport.Connect(context.WithoutCancel(ctx))
}

// RoundTrip implements http.RoundTripper.
func (l *httpLink) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != l.base.Scheme || req.URL.Host != l.base.Host {
		l.elsewhere.Store(req.URL)
		return nil, errElsewhere
	}
	d := deliveryOf(req.Context())
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(l.life, cancel)
	if req.Method == http.MethodPost {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: d.maybe})
	}
	req = req.Clone(ctx)
	for name, values := range l.headers {
		req.Header[name] = values
	}
	resp, err := l.inner.RoundTrip(req)
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	if resp.StatusCode == http.StatusNotFound {
		d.never() // no such session, no such place: nothing took it
	}
	body := &body{ReadCloser: resp.Body, link: l, left: -1, release: func() { stop(); cancel() }}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		body.left = maxMessage
	}
	resp.Body = body
	return resp, nil
}

// body bounds a response, unless it is a stream, whose events are bounded one by
// one, and keeps JSON from being deeper than a decoder's stack.
type body struct {
	io.ReadCloser
	link    *httpLink
	left    int // bytes; negative: no bound
	nesting nesting
	release func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.link.arrived.Add(int64(n))
	if b.left >= 0 {
		if b.left -= n; b.left < 0 {
			return 0, fmt.Errorf("the server's answer is longer than %d MiB", maxMessage>>20)
		}
	}
	if !b.nesting.fits(p[:n]) {
		return 0, errors.New("the server's answer is nested too deeply")
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// nesting follows the brackets of JSON text outside its strings. A line ends
// whatever was open: messages in event streams are lines.
type nesting struct {
	depth           int
	quoted, escaped bool
}

const maxNesting = 1000

func (s *nesting) fits(text []byte) bool {
	for _, c := range text {
		switch {
		case c == '\n':
			s.quoted, s.escaped = false, false
		case s.escaped:
			s.escaped = false
		case s.quoted:
			s.escaped, s.quoted = c == '\\', c != '"'
		case c == '"':
			s.quoted = true
		case c == '{' || c == '[':
			if s.depth++; s.depth > maxNesting {
				return false
			}
		case c == '}' || c == ']':
			s.depth = max(0, s.depth-1)
		}
	}
	return true
}

// reserved are networks that are nobody's on the internet and that netip has no
// word for: shared (RFC 6598), 0/8, 240/4, benchmarks, and those that wrap an
// IPv4 address (NAT64, 6to4).
var reserved = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"),
}

// public refuses an address (HOST:PORT, as dialled) that is this machine's, its
// network's or nobody's.
func public(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s: %w", address, errPrivate)
	}
	ip := at.Addr().Unmap().WithZone("")
	bad := !ip.IsGlobalUnicast() || ip.IsPrivate()
	for _, p := range reserved {
		bad = bad || p.Contains(ip)
	}
	if bad {
		return fmt.Errorf("%s %w", ip, errPrivate)
	}
	return nil
}

// headers resolves the configured headers: env:NAME, or a word before it.
func (c Config) headers(getenv func(string) string) (http.Header, error) {
	out := http.Header{}
	for name, value := range c.Headers {
		at := strings.LastIndexByte(value, ' ') + 1
		if strings.HasPrefix(value[at:], "env:") {
			v, err := variable(value[at:], getenv)
			if err != nil {
				return nil, fmt.Errorf("headers.%s: %w", name, err)
			}
			value = value[:at] + v
		}
		out.Set(name, value)
	}
	return out, nil
}
