package kubetest

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault makes requests of one verb fail: create, get, list, watch, delete, exec,
// policy, or event, which is one event of a watch.
type Fault struct {
	Verb       string
	Times      int // how often; 0 = always
	After      int // how many are let through first
	Code       int // of the answer; 0 = the connection or the watch is cut
	Reason     metav1.StatusReason
	Message    string
	RetryAfter int // seconds
	// Lost: the request is carried out and its answer never arrives.
	Lost bool
}

// Fail adds a fault.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// Calls says how often a verb was asked for.
func (s *Server) Calls(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[verb]
}

// count notes a call and finds the fault it runs into, nil for none.
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
		hit := *f
		return &hit
	}
	return nil
}

// answer is the fault's answer to a request; false: there is none.
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

// instead is what a watch says in place of an event before it ends.
func (f *Fault) instead(send func(string, any) bool) bool {
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

// Cut breaks every connection there is.
func (s *Server) Cut() { s.conns.each(func(c *conn) { _ = c.Close() }) }

// Freeze makes every connection there is silent without ending it, as a machine
// that loses its power does.
func (s *Server) Freeze() { s.conns.each(func(c *conn) { c.freeze() }) }

// listener knows its connections.
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
	c := &conn{Conn: inner, from: l, ice: make(chan struct{}), cold: make(chan struct{})}
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

// conn can be frozen: then nothing passes until it is closed.
type conn struct {
	net.Conn
	from       *listener
	once, warm sync.Once
	cold, ice  chan struct{} // closed: frozen; and closed for good
}

func (c *conn) freeze() { c.once.Do(func() { close(c.cold) }) }
func (c *conn) melt()   { c.warm.Do(func() { close(c.ice) }) }

func (c *conn) pass() {
	select {
	case <-c.cold:
		<-c.ice
	default:
	}
}

func (c *conn) Read(p []byte) (int, error) {
	c.pass()
	n, err := c.Conn.Read(p)
	c.pass()
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	c.pass()
	return c.Conn.Write(p)
}

func (c *conn) Close() error {
	c.melt()
	c.from.mu.Lock()
	delete(c.from.open, c)
	c.from.mu.Unlock()
	return c.Conn.Close()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
