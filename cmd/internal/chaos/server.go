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

// processFaults injects the faults of processes.
type processFaults interface {
	// asked is called for each request before its answer.
	asked()
	// strike injects a fault, if possible into the process that asks from that
	// address. found is false if no process runs now.
	strike(f planned, asker string) (found bool, err error)
}

// server is the model server of a trial. It counts requests, at which it injects the
// faults of processes.
type server struct {
	*mock.Handler
	URL string
	web *http.Server
	cfg Config

	mu        sync.Mutex
	asked     int
	due       []planned // by At
	processes processFaults
	struck    map[Kind]int
	failures  []error
}

func serve(cfg Config, p plan, v processFaults, struck map[Kind]int) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the model server: %w", err)
	}
	s := &server{Handler: mock.NewHandler(script(p.server)), URL: "http://" + l.Addr().String() + "/v1", cfg: cfg, due: p.process, processes: v, struck: struck}
	s.web = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.web.Serve(l) }() // ends with close
	return s, nil
}

func (s *server) close() { _ = s.web.Close() }

// questions returns the number of requests so far.
func (s *server) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// ServeHTTP counts requests and injects faults before or after their answers.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		s.Handler.ServeHTTP(w, r)
		return
	}
	s.mu.Lock()
	s.asked++
	s.processes.asked()
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

// next returns and removes the fault that is due.
func (s *server) next() (planned, bool) {
	if len(s.due) == 0 || s.due[0].At > s.asked {
		return planned{}, false
	}
	fault := s.due[0]
	s.due = s.due[1:]
	return fault, true
}

// strike injects a fault. One that finds no process waits for a later request.
func (s *server) strike(f planned, asker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.processes.strike(f, asker)
	if !found && err == nil {
		s.again(f)
		return
	}
	s.struck[f.Kind]++
	if err != nil {
		s.failures = append(s.failures, fmt.Errorf("injecting a fault of kind %s: %w", f.Kind, err))
	}
	fmt.Fprintf(s.cfg.Progress, "request %d: %s\n", s.asked, f.Kind)
}

// again puts a fault back to the front.
func (s *server) again(f planned) { s.due = append([]planned{f}, s.due...) }
