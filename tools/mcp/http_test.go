package mcp

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Numbers such as WS11 in the names of tests are rows of docs/internals/parity.md.

func serveHTTP(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL
}

// httpServer is newServer with its sessions ended after the test.
func httpServer(t *testing.T) *sdk.Server {
	t.Helper()
	server := newServer(nil)
	t.Cleanup(func() {
		for s := range server.Sessions() {
			_ = s.Close()
		}
	})
	return server
}

func streamable(t *testing.T) string {
	t.Helper()
	server := httpServer(t)
	return serveHTTP(t, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
}

func eventStream(t *testing.T) string {
	t.Helper()
	server := httpServer(t)
	return serveHTTP(t, sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return server }, nil))
}

func address(t *testing.T, url string, sse bool) Config {
	t.Helper()
	return Config{
		ID: "srv", URL: url, SSE: sse, AllowPrivate: true,
		Prefix: "srv__", Timeout: 2 * time.Minute, StartTimeout: 2 * time.Minute,
	}
}

// Addresses of this machine and its network are refused unless the configuration allows
// them. The check uses the dialed address, not the name.
func TestWS11PrivateAddressesAreRefused(t *testing.T) {
	url := streamable(t)
	for _, u := range []string{url, strings.Replace(url, "127.0.0.1", "localhost", 1), strings.Replace(url, "127.0.0.1", "127.1", 1)} {
		cfg := address(t, u, false)
		cfg.AllowPrivate = false
		_, err := Open(t.Context(), []Config{cfg}, deps(newWarnings()))
		if err == nil || !strings.Contains(err.Error(), "allow_private") && !strings.Contains(err.Error(), "no such host") {
			t.Errorf("%s: %v", u, err)
		}
	}
	for _, a := range []string{
		"127.0.0.1:80", "10.1.2.3:80", "172.16.0.1:80", "192.168.1.1:80", "169.254.169.254:80", "100.64.0.1:80", "0.0.0.0:80", "224.0.0.1:80", "255.255.255.255:80",
		"[::1]:80", "[::]:80", "[::ffff:127.0.0.1]:80", "[fe80::1%eth0]:80", "[fd00::1]:80", "[64:ff9b::a00:1]:80", "[2002:7f00:1::]:80", "nonsense",
	} {
		if checkPublic(a) == nil {
			t.Errorf("%s is allowed", a)
		}
	}
	for _, a := range []string{"1.1.1.1:443", "[2606:4700:4700::1111]:443", "[::ffff:1.1.1.1]:443"} {
		if err := checkPublic(a); err != nil {
			t.Error(err)
		}
	}
}

// A reference to another host is not followed, so no header goes there.
func TestWS11NoOtherHostIsFollowed(t *testing.T) {
	var visits atomic.Int32
	elsewhere := serveHTTP(t, http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) { visits.Add(1) }))
	redirect := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere+"/mcp", http.StatusTemporaryRedirect)
	}))
	endpoint := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("event: endpoint\ndata: " + elsewhere + "/messages\n\n"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	for _, cfg := range []Config{address(t, redirect, false), address(t, endpoint, true)} {
		_, err := Open(t.Context(), []Config{cfg}, deps(newWarnings()))
		if err == nil || !strings.Contains(err.Error(), "not followed") {
			t.Errorf("%v", err)
		}
	}
	if visits.Load() != 0 {
		t.Errorf("%d requests went to the other host", visits.Load())
	}
}

// Headers come from the configuration, and secrets in them from the environment.
func TestHeaders(t *testing.T) {
	t.Setenv("TRACESMITH_TEST_TOKEN", "t0k")
	var bad atomic.Int32
	server := httpServer(t)
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0k" || r.Header.Get("X-Mode") != "read only" {
			bad.Add(1)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	cfg := address(t, url, false)
	cfg.Headers = map[string]string{"authorization": "Bearer env:TRACESMITH_TEST_TOKEN", "X-Mode": "read only"}
	set := open(t, newWarnings(), cfg)
	if o := call(t, set, session(), "srv__add", `{"a":1,"b":1}`); o.Text != "2" || bad.Load() != 0 {
		t.Errorf("%+v; %d requests without headers", o, bad.Load())
	}
	cfg.Headers = nil
	if _, err := Open(t.Context(), []Config{cfg}, deps(newWarnings())); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("%v", err)
	}
}

// A hostile server cannot make Open hang or use up memory.
func TestHostileAddresses(t *testing.T) {
	flood := func(kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			for range 1 << 15 {
				if _, err := w.Write([]byte(text)); err != nil {
					return
				}
			}
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // connects, but never answers
	for name, url := range map[string]string{
		"mute":        "http://" + listener.Addr().String(),
		"html":        serveHTTP(t, flood("text/html", "<p>hello</p>")),
		"deep json":   serveHTTP(t, flood("application/json", strings.Repeat("[", 1024))),
		"huge json":   serveHTTP(t, flood("application/json", `"`+strings.Repeat("x", 1022)+`"`)),
		"deep events": serveHTTP(t, flood("text/event-stream", strings.Repeat("data: ", 1)+strings.Repeat("[", 1024))),
		"huge event":  serveHTTP(t, flood("text/event-stream", "data: "+strings.Repeat("x", 1024)+"\n")),
		"errors":      serveHTTP(t, http.NotFoundHandler()),
	} {
		t.Run(name, func(t *testing.T) {
			for _, sse := range []bool{false, true} {
				cfg := address(t, url, sse)
				if name == "mute" {
					cfg.StartTimeout = time.Second
				}
				if _, err := Open(t.Context(), []Config{cfg}, deps(newWarnings())); err == nil || len(err.Error()) > 700 {
					t.Errorf("sse %v: %v", sse, err)
				}
			}
		})
	}
}

// A server that has forgotten its sessions, as after a restart, did not execute the call, so
// it is sent again in a new session. If only the answer is lost, the call is not sent again.
func TestLostSessions(t *testing.T) {
	var handler atomic.Pointer[http.Handler]
	fresh := func() {
		server := httpServer(t)
		h := http.Handler(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
			&sdk.StreamableHTTPOptions{}))
		handler.Store(&h)
	}
	fresh()
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*handler.Load()).ServeHTTP(w, r) }))
	set := open(t, newWarnings(), address(t, url, false))
	for range 3 {
		if o := call(t, set, session(), "srv__count", `{}`); o.Text != "1" {
			t.Errorf("%+v", o)
		}
		fresh()
	}
	lost := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}))
	handler.Store(&lost)
	if o := call(t, set, session(), "srv__count", `{}`); !o.IsError || !strings.Contains(o.Text, "not sent again") {
		t.Errorf("%+v", o)
	}
	if o := call(t, set, session(), "srv__count", `{}`); !o.IsError || !strings.Contains(o.Text, "cannot be reached") {
		t.Errorf("%+v", o)
	}
	fresh()
	if o := call(t, set, session(), "srv__count", `{}`); o.Text != "1" {
		t.Errorf("%+v", o)
	}
}
