package chaos

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/llms/mock"
)

// faultInjector injects faults into the processes of a batch.
type faultInjector interface {
	// requestReceived is called for each model request before its answer.
	requestReceived()
	// strike injects a fault, if possible into the process that sends requests from the
	// address client. found is false if no process can be struck now.
	strike(f processFault, client string) (found bool, err error)
}

// server is the model server of a trial. It counts requests, and injects the faults of
// processes at the planned ones.
type server struct {
	*mock.Handler
	URL string
	web *http.Server
	cfg Config

	mu            sync.Mutex
	requests      int            // received so far
	due           []processFault // sorted by At
	faultInjector faultInjector
	struck        map[Kind]int
	failures      []error // of injecting faults
}

// serve starts the model server. It counts the faults that strike in struck.
func serve(cfg Config, p plan, st faultInjector, struck map[Kind]int) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the model server: %w", err)
	}
	s := &server{Handler: mock.NewHandler(script(p.server)), URL: "http://" + l.Addr().String() + "/v1", cfg: cfg, due: p.process, faultInjector: st, struck: struck}
	s.web = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.web.Serve(l) }() // ends with close
	return s, nil
}

func (s *server) close() { _ = s.web.Close() }

// requestCount returns the number of requests so far.
func (s *server) requestCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// ServeHTTP counts requests and injects faults before or after their answers.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		s.Handler.ServeHTTP(w, r)
		return
	}
	s.mu.Lock()
	s.requests++
	s.faultInjector.requestReceived()
	fault, ok := s.next()
	s.mu.Unlock()
	if ok && !fault.Late {
		s.strike(fault, r.RemoteAddr)
	}
	s.Handler.ServeHTTP(w, r)
	if ok && fault.Late {
		_ = http.NewResponseController(w).Flush()
		s.strike(fault, r.RemoteAddr)
	}
}

// next removes the next fault from due and returns it, if its request has been received. The
// caller holds the lock.
func (s *server) next() (processFault, bool) {
	if len(s.due) == 0 || s.due[0].At > s.requests {
		return processFault{}, false
	}
	fault := s.due[0]
	s.due = s.due[1:]
	return fault, true
}

// strike injects a fault. If no process can be struck, it postpones the fault to the next
// request.
func (s *server) strike(f processFault, client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.faultInjector.strike(f, client)
	if !found && err == nil {
		s.due = append([]processFault{f}, s.due...)
		return
	}
	s.struck[f.Kind]++
	if err != nil {
		s.failures = append(s.failures, fmt.Errorf("injecting a fault of kind %s: %w", f.Kind, err))
	}
	fmt.Fprintf(s.cfg.Progress, "request %d: %s\n", s.requests, f.Kind)
}
