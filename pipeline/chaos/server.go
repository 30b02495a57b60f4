package chaos

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tracesmith/tracesmith/llms/llmtest"
)

// stopped is how long a stopped process stands still.
const stopped = 2 * time.Second

// server is the model server of a trial and, because it counts the requests,
// what makes the faults of processes strike.
type server struct {
	*llmtest.Handler
	URL string
	web *http.Server
	cfg Config

	mu       sync.Mutex
	asked    int
	due      []planned // by At
	disk     *disk
	child    *os.Process // nil: none is alive, or it is about to end
	started  time.Time   // of the child
	waking   bool        // the child has not asked yet
	resumed  []time.Duration
	ended    map[Kind]bool // what the child was brought to its end with
	struck   map[Kind]int
	failures []error
	pending  sync.WaitGroup // children to be woken up
}

func serve(cfg Config, p plan, d *disk, struck map[Kind]int) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the model server: %w", err)
	}
	s := &server{Handler: llmtest.NewHandler(script(p.server)), URL: "http://" + l.Addr().String() + "/v1", cfg: cfg, due: p.process, disk: d, struck: struck}
	s.web = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.web.Serve(l) }() // ends with close
	return s, nil
}

func (s *server) close() {
	_ = s.web.Close()
	s.pending.Wait()
}

// begin names the process that faults strike from now on.
func (s *server) begin(child *os.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.child, s.waking, s.started, s.ended = child, true, time.Now(), map[Kind]bool{}
}

// end tells what brought the process to its end.
func (s *server) end() map[Kind]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.child = nil
	return s.ended
}

// ServeHTTP counts the questions and lets the faults strike around them.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		s.Handler.ServeHTTP(w, r)
		return
	}
	s.mu.Lock()
	s.asked++
	if s.waking {
		s.resumed, s.waking = append(s.resumed, time.Since(s.started)), false
	}
	fault, ok := s.next()
	s.mu.Unlock()
	if ok && !fault.Late {
		s.strike(fault)
	}
	s.Handler.ServeHTTP(w, r)
	if ok && fault.Late {
		_ = http.NewResponseController(w).Flush()
		s.strike(fault)
	}
}

// next takes the fault that is due, if there is a process to strike.
func (s *server) next() (planned, bool) {
	if len(s.due) == 0 || s.due[0].At > s.asked || s.child == nil {
		return planned{}, false
	}
	fault := s.due[0]
	s.due = s.due[1:]
	return fault, true
}

// strike makes a fault happen; one that finds nothing waits for a later request.
func (s *server) strike(f planned) {
	s.mu.Lock()
	defer s.mu.Unlock()
	child := s.child
	if child == nil {
		s.again(f)
		return
	}
	var err error
	switch f.Kind {
	case Kill, Clock:
		s.child, s.ended[f.Kind] = nil, true
		err = child.Kill()
	case Drain:
		s.child, s.ended[Drain] = nil, true // a second one would cancel
		err = child.Signal(syscall.SIGINT)
	case Disk:
		s.child, s.ended[Disk] = nil, true
		err = s.disk.fill(uint64(f.At%2) * 40 << 20)
	case Stop:
		err = child.Signal(syscall.SIGSTOP)
		s.pending.Go(func() {
			time.Sleep(stopped)
			_ = child.Signal(syscall.SIGCONT)
		})
	case Guest:
		var found bool
		if found, err = killGuest(child.Pid, s.cfg.Guest, f.At); !found && err == nil {
			s.again(f)
			return
		}
	}
	s.struck[f.Kind]++
	if err != nil {
		s.failures = append(s.failures, fmt.Errorf("making a fault of kind %s: %w", f.Kind, err))
	}
	fmt.Fprintf(s.cfg.Progress, "request %d: %s\n", s.asked, f.Kind)
}

// again puts a fault back to the front.
func (s *server) again(f planned) { s.due = append([]planned{f}, s.due...) }
