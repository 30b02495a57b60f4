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

// httpLink connects to a server at a URL. Every request, including redirects and event
// streams, goes to the configured scheme and host, without a proxy, and only to addresses
// that the configuration allows. The link checks each address that it dials, so a host name
// that later resolves to another address cannot bypass the check.
type httpLink struct {
	sdk.Transport
	base      *url.URL
	headers   http.Header
	transport *http.Transport
	bytes     atomic.Int64            // received
	otherHost atomic.Pointer[url.URL] // a URL on another host to which the server pointed, if any
	lifetime  context.Context         // the end of lifetime ends all requests
	end       context.CancelFunc      // ends lifetime
}

var (
	errOtherHost = errors.New("refers to another host")
	errPrivate   = errors.New("is a loopback or private address: set allow_private: true to reach it")
)

func newHTTPLink(cfg Config, headers http.Header) (*httpLink, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, errors.New("url: not an http or https URL")
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if !cfg.AllowPrivate {
		dialer.Control = func(_, address string, _ syscall.RawConn) error { return checkPublic(address) }
	}
	l := &httpLink{base: base, headers: headers, transport: &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10,
	}}
	l.lifetime, l.end = context.WithCancel(context.Background())
	client := &http.Client{Transport: l}
	if cfg.SSE {
		l.Transport = &sdk.SSEClientTransport{Endpoint: cfg.URL, HTTPClient: client, MaxEventSize: maxMessage}
	} else {
		l.Transport = &sdk.StreamableClientTransport{Endpoint: cfg.URL, HTTPClient: client, MaxEventSize: maxMessage, MaxRetries: 1}
	}
	return l, nil
}

func (l *httpLink) received() int64 { return l.bytes.Load() }

// cause implements link. It returns the other host to which the server pointed, because
// the error of a stream that ends at the same time may hide it.
func (l *httpLink) cause() string {
	if u := l.otherHost.Load(); u != nil {
		return fmt.Sprintf("the server refers to %s://%s, which is not the configured host: not followed", u.Scheme, u.Host)
	}
	return ""
}

func (l *httpLink) cut() {
	l.end()
	l.transport.CloseIdleConnections()
}

// Connect implements sdk.Transport. The event stream of the SSE transport ends with the
// context of Connect, so it must not get the context of the handshake.
func (l *httpLink) Connect(ctx context.Context) (sdk.Connection, error) {
	return l.Transport.Connect(context.WithoutCancel(ctx))
}

// RoundTrip implements http.RoundTripper.
func (l *httpLink) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != l.base.Scheme || req.URL.Host != l.base.Host {
		l.otherHost.Store(req.URL)
		return nil, errOtherHost
	}
	d := deliveryOf(req.Context())
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(l.lifetime, cancel)
	if req.Method == http.MethodPost {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: d.maybeSent})
	}
	req = req.Clone(ctx)
	for name, values := range l.headers {
		req.Header[name] = values
	}
	resp, err := l.transport.RoundTrip(req)
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	if resp.StatusCode == http.StatusNotFound {
		d.notSent() // unknown session or path
	}
	body := &limitedBody{ReadCloser: resp.Body, link: l, remaining: -1, release: func() { stop(); cancel() }}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		body.remaining = maxMessage
	}
	resp.Body = body
	return resp, nil
}

// limitedBody limits the size of a response and the depth of its JSON. An event stream has no
// size limit, because the SDK limits each event.
type limitedBody struct {
	io.ReadCloser
	link      *httpLink
	remaining int // bytes that may still be read; negative: no limit
	nesting   jsonNesting
	release   func()
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.link.bytes.Add(int64(n))
	if b.remaining >= 0 {
		if b.remaining -= n; b.remaining < 0 {
			return 0, fmt.Errorf("the server's answer is longer than %d MiB", maxMessage>>20)
		}
	}
	if !b.nesting.fits(p[:n]) {
		return 0, errors.New("the server's answer is nested too deeply")
	}
	return n, err
}

// Close implements io.Closer.
func (b *limitedBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// jsonNesting counts the open brackets of JSON text that arrives in pieces. A newline ends an open
// string, because each message in an event stream is a line.
type jsonNesting struct {
	depth           int
	quoted, escaped bool
}

const maxNesting = 1000

// fits adds text and reports whether the depth has stayed within maxNesting.
func (s *jsonNesting) fits(text []byte) bool {
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

// reserved lists networks that are not on the public internet and that the predicates of
// netip do not cover: shared addresses (RFC 6598), 0/8, 240/4, benchmarking, and networks
// that embed an IPv4 address (NAT64, 6to4).
var reserved = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"),
}

// checkPublic returns an error unless an address (IP:PORT) is on the public internet.
func checkPublic(address string) error {
	addrPort, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s: %w", address, errPrivate)
	}
	ip := addrPort.Addr().Unmap().WithZone("")
	isPrivate := !ip.IsGlobalUnicast() || ip.IsPrivate()
	for _, p := range reserved {
		isPrivate = isPrivate || p.Contains(ip)
	}
	if isPrivate {
		return fmt.Errorf("%s %w", ip, errPrivate)
	}
	return nil
}

// headers returns the configured headers. If the last word of a value is env:NAME, it becomes the
// value of that variable.
func (c Config) headers(getenv func(string) string) (http.Header, error) {
	out := http.Header{}
	for name, value := range c.Headers {
		lastWord := strings.LastIndexByte(value, ' ') + 1
		if strings.HasPrefix(value[lastWord:], "env:") {
			v, err := variable(value[lastWord:], getenv)
			if err != nil {
				return nil, fmt.Errorf("headers.%s: %w", name, err)
			}
			value = value[:lastWord] + v
		}
		out.Set(name, value)
	}
	return out, nil
}
