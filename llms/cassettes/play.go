package cassettes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/llms/mock"
)

// Modes of a Player.
const (
	Strict      = "strict"      // requests of a session must be the recorded ones, in order
	Lenient     = "lenient"     // requests of a session get the recorded answers in order, whatever they contain
	Passthrough = "passthrough" // a recorded request gets its answer; others go to the upstream
)

// Modes lists the modes.
func Modes() []string { return []string{Strict, Lenient, Passthrough} }

// Player answers requests from cassettes. It is safe for concurrent use.
type Player struct {
	mode     string
	speed    float64
	upstream http.Handler
	running  sync.WaitGroup

	mu       sync.Mutex
	sessions map[string]*recording
	claimed  map[string]*recording // by the session ids of clients
	problems []string
	played   int // requests answered from cassettes
	passed   int // requests passed to the upstream
}

// recording holds the recorded exchanges of one session.
type recording struct {
	list    []Exchange
	used    []bool
	next    int
	claimed bool
}

// NewPlayer returns a Player for sessions. With speed 0 it answers at once, with 1 as fast
// as recorded, with 2 twice as fast. Only Passthrough uses upstream.
func NewPlayer(sessions map[string][]Exchange, mode string, speed float64, upstream http.Handler) (*Player, error) {
	switch {
	case !slices.Contains(Modes(), mode):
		return nil, fmt.Errorf("unknown mode %q: choose %s", mode, strings.Join(Modes(), ", "))
	case speed < 0 || speed != speed:
		return nil, fmt.Errorf("speed is %g: choose 0 (at once), 1 (as recorded) or more", speed)
	case mode == Passthrough && upstream == nil:
		return nil, fmt.Errorf("mode passthrough needs an upstream")
	}
	p := &Player{mode: mode, speed: speed, upstream: upstream, sessions: map[string]*recording{}, claimed: map[string]*recording{}}
	for name, list := range sessions {
		// If the client disconnected, the answer is incomplete.
		list = slices.DeleteFunc(slices.Clone(list), func(ex Exchange) bool { return ex.End == clientLeft })
		p.sessions[name] = &recording{list: list, used: make([]bool, len(list))}
	}
	return p, nil
}

// ServeHTTP implements http.Handler.
func (p *Player) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.running.Add(1)
	defer p.running.Done()
	if strings.HasSuffix(r.URL.Path, "/__problems") {
		body, _ := json.Marshal(map[string]any{"problems": p.Problems()}) // cannot fail
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, "reading the request: it is too long or incomplete")
		return
	}
	var known secrets // the client's key is masked in cassettes
	known.learn(r)
	masked := known.mask(bytes.Clone(body))
	path := string(known.mask([]byte(r.URL.RequestURI())))
	ex, problem := p.find(sessionOf(r.Header, masked), r.Method, path, masked)
	switch {
	case ex != nil:
		p.play(w, r, *ex)
	case p.mode == Passthrough:
		r.Body = io.NopCloser(bytes.NewReader(body))
		p.upstream.ServeHTTP(w, r)
	default:
		refuse(w, problem)
	}
}

func refuse(w http.ResponseWriter, message string) {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"code": "cassette", "type": "invalid_request_error", "message": message}}) // cannot fail
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(body)
}

// find returns the recorded exchange for a request, or the reason why there is none.
func (p *Player) find(session, method, path string, body []byte) (*Exchange, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	hash := HashRequest(method, path, body)
	t := p.recording(session, hash)
	if session == Other && t != nil { // any client may send these any number of times
		for i := range t.list {
			if t.list[i].Hash == hash {
				p.played++
				return &t.list[i], ""
			}
		}
	}
	problem := p.match(t, session, method+" "+path, hash, body)
	if problem == "" {
		p.played++
		ex := &t.list[t.next]
		t.used[t.next] = true
		t.next++
		return ex, ""
	}
	if p.mode == Passthrough {
		p.passed++
		return nil, ""
	}
	p.problems = append(p.problems, problem)
	return nil, problem
}

// recording returns the recording of a session. If the session was not recorded, it returns
// an unused recording that begins with the same request.
func (p *Player) recording(session, hash string) *recording {
	if t := p.sessions[session]; t != nil {
		return t
	}
	if t := p.claimed[session]; t != nil {
		return t
	}
	for _, name := range slices.Sorted(maps.Keys(p.sessions)) {
		if t := p.sessions[name]; name != Other && !t.claimed && t.next == 0 && len(t.list) > 0 && t.list[0].Hash == hash {
			t.claimed = true
			p.claimed[session] = t
			return t
		}
	}
	return nil
}

// match sets t.next to the exchange for a request, or returns the reason why there is none.
func (p *Player) match(t *recording, session, request, hash string, body []byte) string {
	if t == nil {
		return fmt.Sprintf("session %q was not recorded, and no recorded session begins with this request: %s", session, request)
	}
	if p.mode == Passthrough {
		for i := range t.list {
			if !t.used[i] && t.list[i].Hash == hash {
				t.next = i
				return ""
			}
		}
		return "it was not recorded"
	}
	if t.next >= len(t.list) {
		return fmt.Sprintf("session %q has %d recorded exchanges, one more was asked for: %s", session, len(t.list), request)
	}
	want := t.list[t.next]
	if p.mode == Lenient || want.Hash == hash {
		return ""
	}
	prefix := fmt.Sprintf("session %q, exchange %d: ", session, t.next)
	if got := want.Method + " " + want.Path; got != request {
		return prefix + fmt.Sprintf("the request differs from the recorded one:\n  - %s\n  + %s", got, request)
	}
	if diff := mock.Difference(messagesOf(want.Request), messagesOf(body)); diff != "" {
		return prefix + diff
	}
	return prefix + "the messages are as recorded, but another field differs: " + fieldDiff(want.Request, body)
}

// fieldDiff describes the first top-level field in which two requests differ.
func fieldDiff(want, got []byte) string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(want, &a) != nil || json.Unmarshal(got, &b) != nil {
		return "one of them is not a JSON object"
	}
	names := slices.Sorted(maps.Keys(a))
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if slices.Contains(volatileFields, name) {
			continue
		}
		if diff := mock.Difference([]json.RawMessage{orNull(a[name])}, []json.RawMessage{orNull(b[name])}); diff != "" {
			_, lines, _ := strings.Cut(diff, "\n")
			return name + "\n" + lines
		}
	}
	return "unknown"
}

// orNull returns raw, or the JSON value null if raw is empty.
func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// play sends a recorded answer in its chunks, and breaks the connection at the end if the
// recorded answer was cut.
func (p *Player) play(w http.ResponseWriter, r *http.Request, ex Exchange) {
	for name, values := range ex.Headers {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	status := ex.Status
	if status < 200 || status > 599 {
		status = http.StatusBadGateway // the recorder does not write such a status
	}
	w.WriteHeader(status)
	begun := time.Now()
	for _, c := range ex.Chunks {
		if p.speed > 0 {
			due := time.Duration(float64(c.Millis) / p.speed * float64(time.Millisecond))
			select {
			case <-time.After(due - time.Since(begun)):
			case <-r.Context().Done():
				return
			}
		}
		if _, err := w.Write(c.data()); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
	if ex.End == answerCut {
		panic(http.ErrAbortHandler) // the documented way to break the connection
	}
}

// Problems lists the requests that had no recorded answer.
func (p *Player) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.problems...)
}

// Wait waits for running requests. It returns how many requests were answered from
// cassettes, and how many were passed to the upstream.
func (p *Player) Wait() (played, passed int) {
	p.running.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.played, p.passed
}

// BasePath returns the part of the recorded paths before the path of the API.
func BasePath(sessions map[string][]Exchange) string {
	for _, list := range sessions {
		for _, ex := range list {
			for _, api := range []string{"/chat/completions", "/messages", "/responses", "/models"} {
				if base, _, ok := strings.Cut(ex.Path, api); ok {
					return base
				}
			}
		}
	}
	return "/v1"
}
