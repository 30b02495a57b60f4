package llmtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Handler serves a Script. Safe for concurrent use.
type Handler struct {
	script Script
	limits *limiter

	running sync.WaitGroup // requests

	mu       sync.Mutex
	log      []*Exchange
	struck   map[strikeKey]int // how often a fault has struck a turn
	attempts map[turnKey]int   // how often a turn was asked for
	problems []string
}

type turnKey struct {
	session int
	id      string // X-Session-ID
	turn    int
}

// Exchange is one request and how it was answered.
type Exchange struct {
	SessionID string // X-Session-ID
	Session   int    // index in the script, -1: no match
	Turn      int
	Model     string
	Body      json.RawMessage
	Answer    json.RawMessage // the regular answer, whatever became of it
	// Prompt and Completion are the tokens the regular answer counts.
	Prompt, Completion int64
	Status             int    // what was answered, 0: the connection was broken
	Fault              string // "" for a regular answer
	Answered           bool   // the regular answer was sent whole
	Lost               bool   // it was begun and did not come to its end
	plain              bool   // without any fault
}

// NewHandler returns a handler for s.
func NewHandler(s Script) *Handler {
	return &Handler{script: s, limits: newLimiter(s.Limits), struck: map[strikeKey]int{}, attempts: map[turnKey]int{}}
}

// Server is a Handler listening on a loopback port.
type Server struct {
	*Handler
	// URL is the base_url of the server, with /v1.
	URL  string
	done func()
}

// Listen starts a server on a free loopback port; Close ends it.
func Listen(s Script) (*Server, error) { return ListenAt("127.0.0.1:0", s) }

// ListenAt starts a server at an address.
func ListenAt(address string, s Script) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("starting the scripted model server: %w", err)
	}
	h := NewHandler(s)
	ended := make(chan error, 1)
	web := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { ended <- web.Serve(l) }()
	return &Server{Handler: h, URL: "http://" + l.Addr().String() + "/v1", done: sync.OnceFunc(func() {
		_ = web.Close()
		<-ended
		h.running.Wait()
	})}, nil
}

// Close breaks open connections, stalled ones included, and waits for the end.
func (s *Server) Close() { s.done() }

// TB is what Serve needs of a testing.TB.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(func())
}

// Serve starts a server for one test and ends it with the test. The test fails
// on every problem the server saw (see Problems).
func Serve(t TB, s Script) *Server {
	t.Helper()
	srv, err := Listen(s)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		srv.Close()
		for _, p := range srv.Problems() {
			t.Errorf("scripted model server: %s", p)
		}
	})
	return srv
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.running.Add(1)
	defer h.running.Done()
	key := cmp.Or(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Header.Get("X-Api-Key"))
	if h.script.Key != "" && key != h.script.Key {
		sendError(w, http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided: "+key)
		return
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/__"):
		h.inspect(w, r)
	case r.Method == http.MethodGet && r.URL.Path == "/v1/models":
		h.models(w)
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/models/"):
		h.model(w, strings.TrimPrefix(r.URL.Path, "/v1/models/"))
	case r.Method == http.MethodPost && r.URL.Path == "/v1/chat/completions":
		h.chat(w, r, func(body []byte) (conversation, error) { return decodeChat(body) })
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages":
		h.chat(w, r, func(body []byte) (conversation, error) { return decodeMessages(body) })
	default:
		sendError(w, http.StatusNotFound, "not_found", "no such endpoint: "+r.Method+" "+r.URL.Path)
	}
}

// names are the models there are.
func (h *Handler) names() []string {
	names := slices.Clone(h.script.Models)
	if len(names) == 0 {
		for _, s := range h.script.Sessions {
			if s.Model != "" && !slices.Contains(names, s.Model) {
				names = append(names, s.Model)
			}
		}
	}
	return names
}

func (h *Handler) model(w http.ResponseWriter, name string) {
	if names := h.names(); len(names) > 0 && !slices.Contains(names, name) {
		sendError(w, http.StatusNotFound, "not_found_error", "model: "+name)
		return
	}
	send(w, http.StatusOK, map[string]any{"id": name, "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z"})
}

func (h *Handler) models(w http.ResponseWriter) {
	data := []map[string]any{}
	for _, n := range h.names() {
		data = append(data, map[string]any{"id": n, "object": "model", "created": 0, "owned_by": "script"})
	}
	send(w, http.StatusOK, map[string]any{"object": "list", "data": data})
}

// conversation is a request as its API words it.
type conversation interface {
	model() string
	turns() int   // answers it holds already
	limit() int64 // tokens the answer may have, 0: not said
	streamed() bool
	system() string // the text that sets the scene
	// check returns what is wrong with it: by itself, and compared with the
	// request before.
	check(ex Exchange, previous *Exchange) []string
	render(ex Exchange, t Turn) []byte
	frames(answer []byte) [][]byte                   // of a streamed answer
	failure(status int, code, message string) []byte // an error in the API's words
}

func (h *Handler) chat(w http.ResponseWriter, r *http.Request, decode func([]byte) (conversation, error)) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		sendError(w, http.StatusBadRequest, "invalid_request_error", "reading the request: "+err.Error())
		return
	}
	ex := Exchange{SessionID: r.Header.Get("X-Session-ID"), Session: -1, Body: body}
	req, err := decode(body)
	if err != nil {
		sendError(w, http.StatusBadRequest, "invalid_request_error", "the request is not valid JSON: "+err.Error())
		return
	}
	if wait, why := h.limits.begin(w.Header(), float64(int64(len(body)/4)+req.limit())); why != "" {
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(wait.Milliseconds()+1, 10))
		h.refuse(ex, req)
		sendError(w, http.StatusTooManyRequests, "rate_limit_exceeded", why)
		return
	}
	defer h.limits.end()
	entry, fault, refusal := h.answer(ex, req)
	if refusal != "" {
		sendError(w, http.StatusBadRequest, "llmtest", refusal)
		return
	}
	p := payload{kind: "application/json", frames: [][]byte{entry.Answer}}
	if req.streamed() {
		p = payload{kind: "text/event-stream", frames: req.frames(entry.Answer), stream: true, broken: event([]byte(fault.Body))}
	}
	h.settle(entry, fault, transmit(w, r, p, fault))
}

// settle corrects the log where an answer did not come to its end. A client
// that has its answer and asks for the log finds it right without this.
func (h *Handler) settle(entry *Exchange, f Fault, out sent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if out == whole || !entry.Answered {
		return // as it was foreseen
	}
	entry.Answered, entry.Lost = false, true
	if entry.Fault == "" {
		entry.Fault = "client left"
	}
}

// answer finds the turn, checks the request and logs it. The fault is resolved;
// refusal is why there is no answer.
func (h *Handler) answer(ex Exchange, req conversation) (entry *Exchange, fault Fault, refusal string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.find(&ex, req)
	h.problems = append(h.problems, req.check(ex, h.previous(ex))...)
	var turn *Turn
	switch {
	case ex.Session < 0:
		refusal = fmt.Sprintf("no session of the script matches X-Session-ID %q, model %q", ex.SessionID, ex.Model)
	default:
		s := h.script.Sessions[ex.Session]
		switch {
		case ex.Turn < len(s.Turns):
			turn = &s.Turns[ex.Turn]
		case s.Repeat && len(s.Turns) > 0:
			turn = &s.Turns[len(s.Turns)-1]
		default:
			refusal = fmt.Sprintf("session %d of the script has %d turns, turn %d was asked for", ex.Session, len(s.Turns), ex.Turn)
		}
		if h.answered(ex) {
			h.problems = append(h.problems, fmt.Sprintf("session %q: turn %d was asked for again after its answer", ex.SessionID, ex.Turn))
		}
	}
	h.log = append(h.log, &ex)
	if refusal != "" {
		ex.Status, ex.Fault = http.StatusBadRequest, "refused"
		h.problems = append(h.problems, refusal)
		return &ex, Fault{}, refusal
	}
	ex.Status, ex.Answer = http.StatusOK, req.render(ex, *turn)
	if u := turn.Usage; u != nil {
		ex.Prompt, ex.Completion = u.Prompt, u.Completion
	}
	if f := h.strike(turnKey{ex.Session, ex.SessionID, ex.Turn}, turn, &h.script.Sessions[ex.Session]); f != nil {
		fault = f.resolved(req)
		ex.note(fault)
	} else {
		ex.plain, ex.Answered = true, true
	}
	return &ex, fault, ""
}

// find fills in which session and turn a request belongs to.
func (h *Handler) find(ex *Exchange, req conversation) {
	ex.Model, ex.Turn = req.model(), req.turns()
	ex.Session = slices.IndexFunc(h.script.Sessions, func(s Session) bool {
		return (s.ID == "" || s.ID == ex.SessionID) && (s.Model == "" || s.Model == ex.Model) &&
			(s.Tag == "" || strings.Contains(req.system(), s.Tag))
	})
}

// refuse logs a request that is over the limits.
func (h *Handler) refuse(ex Exchange, req conversation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.find(&ex, req)
	ex.Status, ex.Fault = http.StatusTooManyRequests, "over a limit"
	h.log = append(h.log, &ex)
}

// note writes into the log entry what a fault makes of the answer.
func (ex *Exchange) note(f Fault) {
	switch f.Break {
	case "reset", "silence", "tls":
		ex.Status = 0
	case "":
		ex.Status = cmp.Or(f.Status, http.StatusOK)
	}
	ex.Answered = !f.fails()
	ex.Lost = f.fails() && f.Break != "" && ex.Status != 0
	if f.fails() || f.Kind != "" || f.Break != "" {
		ex.Fault = f.name()
	}
}

// answered tells whether this turn has had a regular answer. Without a session
// id two conversations cannot be told apart, so the question has no answer.
func (h *Handler) answered(ex Exchange) bool {
	return ex.SessionID != "" && slices.ContainsFunc(h.log, func(e *Exchange) bool {
		return e.SessionID == ex.SessionID && e.Session == ex.Session && e.Turn == ex.Turn && e.plain && e.Answered
	})
}

// previous is the last regular exchange of the same conversation.
func (h *Handler) previous(ex Exchange) *Exchange {
	if ex.SessionID == "" {
		return nil
	}
	for _, e := range slices.Backward(h.log) {
		if e.SessionID == ex.SessionID && e.Session == ex.Session && e.Turn == ex.Turn-1 && e.Answered {
			return e
		}
	}
	return nil
}

// Log returns the requests so far, in order of arrival.
func (h *Handler) Log() []Exchange {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Exchange, len(h.log))
	for i, ex := range h.log {
		out[i] = *ex
	}
	return out
}

// Problems lists what a client did wrong: requests nothing matches, surplus
// turns, unanswered tool calls, messages out of order, a rewritten prefix.
func (h *Handler) Problems() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.problems)
}

// TakeProblems returns the problems and forgets them, for tests that cause some.
func (h *Handler) TakeProblems() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.problems
	h.problems = nil
	return p
}
