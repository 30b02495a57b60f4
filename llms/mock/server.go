package mock

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Handler answers model calls from a Script. It is safe for concurrent use.
type Handler struct {
	script Script
	limits *limiter

	mu            sync.Mutex
	log           []*Exchange
	conversations map[conversationKey][]*Exchange // exchanges of the log that have a session id
	cache         promptCache
	faultCounts   map[faultKey]int // how often a fault was applied to a turn
	attempts      map[turnKey]int  // how often a turn was requested
	problems      []string
}

type conversationKey struct {
	session int    // index in the script
	id      string // X-Session-ID
}

type turnKey struct {
	conversationKey
	turn int
}

// Exchange is one request and its answer.
type Exchange struct {
	SessionID string          `json:"session_id"` // X-Session-ID, or else the suffix of the model or the tag
	Session   int             `json:"session"`    // index in the script, -1: no match
	Turn      int             `json:"turn"`
	Model     string          `json:"model"`
	Body      json.RawMessage `json:"body"`
	Answer    json.RawMessage `json:"answer,omitempty"` // the regular answer, sent or not
	Usage     Usage           `json:"usage"`            // of the regular answer
	Billed    Dollars         `json:"billed_usd"`       // for the regular answer, with the script's prices
	At        time.Time       `json:"at"`               // arrival
	Millis    int64           `json:"ms"`               // from arrival to the end of the answer; 0: not yet answered
	Status    int             `json:"status"`           // HTTP status, 0: the connection was broken
	Fault     string          `json:"fault,omitempty"`  // "" for a regular answer
	Again     bool            `json:"again"`            // the turn was requested before
	Answered  bool            `json:"answered"`         // the regular answer was sent completely
	Lost      bool            `json:"lost"`             // the server began the answer and did not finish it
	noFault   bool            // no fault was applied
}

// NewHandler returns a handler for s.
func NewHandler(s Script) *Handler {
	h := &Handler{script: s, limits: newLimiter(s.Limits)}
	h.Reset()
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(strings.TrimPrefix(r.URL.Path, "/v1"), "/__"):
		h.inspect(w, r)
		return
	case r.Method == http.MethodGet && slices.Contains([]string{"/health", "/healthz", "/v1/health"}, r.URL.Path):
		send(w, http.StatusOK, map[string]any{"status": "ok"})
		return
	}
	if key := apiKey(r); h.script.Key != "" && key != h.script.Key {
		sendError(w, http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided: "+key)
		return
	}
	path, ok := h.azure(w, r)
	if !ok {
		return
	}
	switch {
	case r.Method == http.MethodGet && path == "/v1/models":
		h.models(w)
	case r.Method == http.MethodGet && strings.HasPrefix(path, "/v1/models/"):
		h.model(w, strings.TrimPrefix(path, "/v1/models/"))
	case r.Method == http.MethodPost && path == "/v1/chat/completions":
		h.chat(w, r, decode[chatRequest])
	case r.Method == http.MethodPost && path == "/v1/messages":
		h.chat(w, r, decode[messagesRequest])
	case strings.HasPrefix(path, "/v1/responses"):
		sendError(w, http.StatusNotFound, "not_supported", "the Responses API is not supported: use /v1/chat/completions or /v1/messages")
	case r.Method == http.MethodPost && (path == "/tokenize" || path == "/v1/tokenize"):
		h.tokenize(w, r)
	default:
		problem := "no such endpoint: " + r.Method + " " + r.URL.Path
		h.mu.Lock()
		h.problems = append(h.problems, problem)
		h.mu.Unlock()
		sendError(w, http.StatusNotFound, "not_found", problem)
	}
}

// modelNames lists the models of the server.
func (h *Handler) modelNames() []string {
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
	if names := h.modelNames(); len(names) > 0 && !slices.Contains(names, name) {
		sendError(w, http.StatusNotFound, "not_found_error", "model: "+name)
		return
	}
	send(w, http.StatusOK, map[string]any{"id": name, "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z"})
}

func (h *Handler) models(w http.ResponseWriter) {
	data := []map[string]any{}
	for _, n := range h.modelNames() {
		m := map[string]any{"id": n, "object": "model", "created": 0, "owned_by": "script"}
		if h.script.Context > 0 {
			m["max_model_len"] = h.script.Context
		}
		data = append(data, m)
	}
	send(w, http.StatusOK, map[string]any{"object": "list", "data": data})
}

// tokenize answers like vLLM, with the count of the toy tokenizer.
func (h *Handler) tokenize(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Prompt  string `json:"prompt"`
		Content string `json:"content"` // the name in llama.cpp
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err == nil {
		err = json.Unmarshal(body, &ask)
	}
	req, parseErr := decode[chatRequest](body)
	if err = cmp.Or(err, parseErr); err != nil {
		sendError(w, http.StatusBadRequest, invalidRequest, "the request is not valid JSON: "+err.Error())
		return
	}
	n := Count(ask.Prompt + ask.Content)
	if messages := req.texts(); len(messages) > 0 {
		n = countPrompt(messages, req.common().Tools)
	}
	tokens := make([]int, n)
	for i := range tokens {
		tokens[i] = i
	}
	send(w, http.StatusOK, map[string]any{"count": n, "max_model_len": h.script.Context, "tokens": tokens})
}
