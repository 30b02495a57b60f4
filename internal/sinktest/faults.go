package sinktest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Fault is a fault between a client and a server.
type Fault string

// The faults. For all but the first three, the server has executed the request.
const (
	Unavailable Fault = "503"       // refused before it reaches the server
	Internal    Fault = "500"       // refused before it reaches the server
	Refused     Fault = "403"       // refused before it reaches the server, with a permanent error
	Lost        Fault = "lost"      // the connection is cut before the answer
	Torn        Fault = "torn"      // the connection is cut after half of the answer's body
	Silent      Fault = "silent"    // the answer never arrives
	HalfSilent  Fault = "halfquiet" // only half of the answer's body arrives
)

// Faults is a proxy in front of an S3 server that makes planned requests fail.
type Faults struct {
	URL string

	mu     sync.Mutex
	plans  []*plan
	counts map[string]int
}

type plan struct {
	kind  string
	fault Fault
	first int // number of the first matching request, from 1
	last  int
	seen  int
}

// NewFaults starts a proxy in front of target.
func NewFaults(t testing.TB, target string) *Faults {
	f := &Faults{counts: map[string]int{}}
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	quiet := log.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { // signatures cover the host
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		ErrorLog: quiet,
	}
	done := make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault := f.next(kindOf(r))
		if fault == "" {
			proxy.ServeHTTP(w, r)
			return
		}
		f.fail(w, r, proxy, fault, done)
	}))
	srv.Config.ErrorLog = quiet
	srv.Start()
	t.Cleanup(func() { close(done); srv.Close() })
	f.URL = srv.URL
	return f
}

// Plan makes requests of a kind fail: those with the numbers first to last, counted from
// 1 and from now on. Kinds are GET, HEAD, PUT, DELETE, LIST, COPY, PART (of an upload),
// BEGIN and COMPLETE (of an upload) and UPLOADS (a list of uploads).
func (f *Faults) Plan(kind string, fault Fault, first, last int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plans = append(f.plans, &plan{kind: kind, fault: fault, first: first, last: last})
}

// Count returns the number of requests of a kind so far.
func (f *Faults) Count(kind string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[kind]
}

func (f *Faults) next(kind string) (fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[kind]++
	for _, p := range f.plans {
		if p.kind != kind {
			continue
		}
		if p.seen++; fault == "" && p.seen >= p.first && p.seen <= p.last {
			fault = p.fault
		}
	}
	return fault
}

func kindOf(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case q.Has("list-type"):
		return "LIST"
	case q.Has("uploads") && r.Method == http.MethodPost:
		return "BEGIN"
	case q.Has("uploads"):
		return "UPLOADS"
	case q.Has("partNumber"):
		return "PART"
	case q.Has("uploadId") && r.Method == http.MethodPost:
		return "COMPLETE"
	case r.Header.Get("X-Amz-Copy-Source") != "":
		return "COPY"
	}
	return r.Method
}

func (f *Faults) fail(w http.ResponseWriter, r *http.Request, proxy http.Handler, fault Fault, done <-chan struct{}) {
	if fault == Unavailable || fault == Internal || fault == Refused {
		_, _ = io.Copy(io.Discard, r.Body)
		status, _ := strconv.Atoi(string(fault))
		code := map[Fault]string{Unavailable: "SlowDown", Internal: "InternalError", Refused: "AccessDenied"}[fault]
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>planned</Message></Error>")
		return
	}
	rec := httptest.NewRecorder()
	proxy.ServeHTTP(rec, r)
	if fault == Torn || fault == HalfSilent {
		for k, v := range rec.Header() {
			if !strings.EqualFold(k, "Content-Length") {
				w.Header()[k] = v
			}
		}
		w.Header().Set("Content-Length", strconv.Itoa(rec.Body.Len()))
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
	}
	if fault == Silent || fault == HalfSilent {
		select {
		case <-r.Context().Done(): // the client gave up
		case <-done:
		}
	}
	panic(http.ErrAbortHandler)
}
