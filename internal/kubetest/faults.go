package kubetest

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault makes requests with one verb fail: create, get, list, watch, delete, exec,
// policy or event (one event of a watch).
type Fault struct {
	Verb       string
	Times      int // number of failures; 0 = always
	After      int // number of requests that succeed first
	Code       int // status code of the answer; 0 = the connection or watch is cut
	Reason     metav1.StatusReason
	Message    string
	RetryAfter int // seconds
	// Lost means that the server executes the request, but its answer never arrives.
	Lost bool
}

// Fail adds a fault.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// Calls returns the number of requests with a verb, or of execs with a protocol.
func (s *Server) Calls(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[verb]
}

// count counts a request and returns the fault that applies to it; nil if none does.
func (s *Server) count(verb string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[verb]++
	for i, f := range s.faults {
		if f.Verb != verb {
			continue
		}
		if f.After > 0 {
			f.After--
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				s.faults = slices.Delete(slices.Clone(s.faults), i, i+1)
			}
		}
		fault := *f
		return &fault
	}
	return nil
}

// answer writes the fault's answer to a request. It returns false if f is nil.
func (f *Fault) answer(w http.ResponseWriter, serve http.HandlerFunc, r *http.Request) bool {
	switch {
	case f == nil:
		return false
	case f.Lost:
		serve(discard{http.Header{}}, r)
		panic(http.ErrAbortHandler)
	case f.Code == 0:
		panic(http.ErrAbortHandler)
	}
	fail(w, f.Code, f.Reason, f.Message, f.RetryAfter)
	return true
}

// replaceEvent sends an error in place of an event and reports whether the watch must end.
func (f *Fault) replaceEvent(send func(string, any) bool) bool {
	if f == nil {
		return false
	}
	if f.Code != 0 {
		send("ERROR", metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: int32(f.Code), Reason: f.Reason, Message: f.Message,
		})
	}
	return true
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// CloseConnections closes all connections.
func (s *Server) CloseConnections() { s.conns.each(func(c *conn) { _ = c.Close() }) }

// Freeze silences all connections without closing them, like a machine that loses power.
func (s *Server) Freeze() { s.conns.each(func(c *conn) { c.freeze() }) }

// listener tracks its connections.
type listener struct {
	net.Listener
	mu   sync.Mutex
	open map[*conn]bool
}

func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, from: l, frozen: make(chan struct{}), closed: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[*conn]bool{}
	}
	l.open[c] = true
	return c, nil
}

func (l *listener) each(do func(*conn)) {
	l.mu.Lock()
	all := slices.Collect(maps.Keys(l.open))
	l.mu.Unlock()
	for _, c := range all {
		do(c)
	}
}

// conn can be frozen. Its reads and writes then block until it is closed.
type conn struct {
	net.Conn
	from                  *listener
	freezeOnce, closeOnce sync.Once
	frozen, closed        chan struct{}
}

func (c *conn) freeze()  { c.freezeOnce.Do(func() { close(c.frozen) }) }
func (c *conn) release() { c.closeOnce.Do(func() { close(c.closed) }) }

func (c *conn) wait() {
	select {
	case <-c.frozen:
		<-c.closed
	default:
	}
}

func (c *conn) Read(p []byte) (int, error) {
	c.wait()
	n, err := c.Conn.Read(p)
	c.wait()
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	c.wait()
	return c.Conn.Write(p)
}

func (c *conn) Close() error {
	c.release()
	c.from.mu.Lock()
	delete(c.from.open, c)
	c.from.mu.Unlock()
	return c.Conn.Close()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
