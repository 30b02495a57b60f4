package mock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// conversation is a request to one of the two APIs.
type conversation interface {
	common() commonFields
	texts() []textMessage // the messages as plain text, the system prompt first
	// check returns the problems of the request alone, without regard to earlier ones.
	check(body []byte) []string
	// checkPrefix returns why the request does not continue the previous exchange, or "" if it
	// does: it has the same tools, begins with the same messages and adds more.
	checkPrefix(previous Exchange) string
	// checkEcho returns how the request's copy of the previous answer differs from that
	// answer, or "" if it does not.
	checkEcho(previous Exchange) string
	render(ex Exchange, t Turn) []byte               // the body of a regular answer
	failure(status int, code, message string) []byte // the body of an error response
}

// commonFields holds the request fields that both APIs have.
type commonFields struct {
	Model        string          `json:"model"`
	Tools        json.RawMessage `json:"tools"`
	MaxTokens    int64           `json:"max_tokens"`
	MaxCompleted int64           `json:"max_completion_tokens"`
	Stream       bool            `json:"stream"`
}

func (h commonFields) common() commonFields { return h }

func decode[T conversation](body []byte) (conversation, error) {
	var r T
	err := json.Unmarshal(body, &r)
	return r, err
}

// maxRequest is the largest size of a request body, in bytes.
const maxRequest = 64 << 20

// noStreaming is the error message for a request for a stream.
const noStreaming = `streaming is not supported: this server sends each answer in one piece; leave out "stream", or set it to false`

// chat answers one model call.
func (h *Handler) chat(w http.ResponseWriter, r *http.Request, parse func([]byte) (conversation, error)) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		sendError(w, http.StatusBadRequest, invalidRequest, "reading the request: "+err.Error())
		return
	}
	req, err := parse(body)
	if err != nil {
		sendError(w, http.StatusBadRequest, invalidRequest, "the request is not valid JSON: "+err.Error())
		return
	}
	ex := Exchange{SessionID: r.Header.Get("X-Session-ID"), Session: -1, Body: body, At: time.Now()}
	limit := max(req.common().MaxTokens, req.common().MaxCompleted)
	if wait, reason := h.limits.begin(w.Header(), float64(int64(len(body)/4)+limit)); reason != "" {
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(wait.Milliseconds()+1, 10))
		h.logOverLimit(ex, req)
		sendRaw(w, http.StatusTooManyRequests, "application/json", req.failure(http.StatusTooManyRequests, "rate_limit_exceeded", reason))
		return
	}
	defer h.limits.end()
	entry, fault, refusal := h.answer(ex, req)
	if refusal != "" {
		sendRaw(w, http.StatusBadRequest, "application/json", req.failure(http.StatusBadRequest, "mock_script", refusal))
		return
	}
	h.settle(entry, transmit(w, r, entry.Answer, fault))
}

// settle records how long an answer took, and corrects its log entry if the answer
// was not sent completely. Until then the entry says that it was, so that a client
// that reads the log right after the answer finds it correct.
func (h *Handler) settle(entry *Exchange, out delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	entry.Millis = max(1, time.Since(entry.At).Milliseconds())
	if out == complete || !entry.Answered {
		return
	}
	entry.Answered, entry.Lost = false, true
	entry.Fault = cmp.Or(entry.Fault, "client left")
}

// answer finds the turn, checks the request and logs it. It returns the log entry, which
// holds the answer, and the fault to apply while sending it, with all defaults filled in.
// If there is no answer, refusal says why.
func (h *Handler) answer(ex Exchange, req conversation) (entry *Exchange, fault Fault, refusal string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	messages := h.find(&ex, req)
	entry = &ex
	previous := h.previous(ex)
	turn, refusal := h.turn(ex, messages)
	if req.common().Stream {
		refusal = noStreaming
	}
	h.check(ex, req, messages, previous, turn)
	h.addToLog(entry)
	key := turnKey{entry.key(), ex.Turn}
	h.attempts[key]++
	ex.Again = h.attempts[key] > 1
	if refusal == "" && turn.Template {
		filled, err := turn.fill(newTemplateData(ex, messages))
		if err != nil {
			refusal = fmt.Sprintf("session %q, turn %d: its template: %v", ex.SessionID, ex.Turn, err)
		}
		turn = &filled
	}
	if refusal != "" {
		ex.Status, ex.Fault = http.StatusBadRequest, "refused"
		h.problems = append(h.problems, refusal)
		return entry, Fault{}, refusal
	}
	if turn.CacheLost {
		clear(h.cache.kept)
	}
	if turn.Usage == nil && h.script.Tokenizer != "" {
		turn.Usage = h.computeUsage(*turn, req, messages, previous)
	}
	if turn.Usage != nil {
		ex.Usage = *turn.Usage
	}
	h.setBilled(entry, req)
	ex.Status, ex.Answer = http.StatusOK, req.render(ex, *turn)
	if f := h.faultOf(key, turn, ex, req, messages); f != nil {
		fault = f.resolve(req)
		ex.noteFault(fault)
	} else {
		ex.noFault, ex.Answered = true, true
	}
	return entry, fault, ""
}

// faultOf returns the fault of an answer, or nil if there is none. A request with a parameter that
// the model refuses, or with a prompt longer than its context, fails even if the script
// has another fault for it, or none.
func (h *Handler) faultOf(key turnKey, turn *Turn, ex Exchange, req conversation, messages []textMessage) *Fault {
	session := &h.script.Sessions[ex.Session]
	scripted := h.pickFault(key, turn, session)
	if name := firstParameter(ex.Body, session.Refuses); name != "" {
		return &Fault{Status: http.StatusBadRequest, Body: string(req.failure(http.StatusBadRequest, "unsupported_parameter",
			fmt.Sprintf("Unsupported parameter: '%s' is not supported with this model.", name)))}
	}
	if h.script.Context > 0 && countPrompt(messages, req.common().Tools) > h.script.Context {
		return &Fault{Kind: "overflow_openai"}
	}
	return scripted
}

// firstParameter returns the first of names that is a parameter of the request, or "".
func firstParameter(body []byte, names []string) string {
	var params map[string]json.RawMessage
	if len(names) == 0 || json.Unmarshal(body, &params) != nil {
		return ""
	}
	for _, name := range names {
		if _, ok := params[name]; ok {
			return name
		}
	}
	return ""
}

// turn returns a copy of the script's turn that a request asks for, or nil and the
// reason why there is none.
func (h *Handler) turn(ex Exchange, messages []textMessage) (*Turn, string) {
	if ex.Session < 0 {
		return nil, fmt.Sprintf("no session of the script matches X-Session-ID %q, model %q%s", ex.SessionID, ex.Model, h.mismatch(ex, messages))
	}
	s := h.script.Sessions[ex.Session]
	n := ex.Turn
	if n >= len(s.Turns) && s.Repeat {
		n = len(s.Turns) - 1
	}
	if n < 0 || n >= len(s.Turns) {
		surplus := ""
		if len(messages) > 0 {
			last := messages[len(messages)-1]
			surplus = fmt.Sprintf("\n  - the end (turns: %d)\n  + %s: %s", len(s.Turns), last.Role, clip(last.Text))
		}
		return nil, fmt.Sprintf("session %d of the script has %d turns, but turn %d was requested%s", ex.Session, len(s.Turns), ex.Turn, surplus)
	}
	t := s.Turns[n]
	t.Template = t.Template || s.Template
	return &t, ""
}

// mismatch shows how a request differs from the first five sessions of the script.
func (h *Handler) mismatch(ex Exchange, messages []textMessage) string {
	var b strings.Builder
	for i, s := range h.script.Sessions[:min(5, len(h.script.Sessions))] {
		for _, f := range []struct{ name, want, got string }{{"session", s.ID, ex.SessionID}, {"model", s.Model, ex.Model}} {
			if f.want != "" && f.want != f.got {
				fmt.Fprintf(&b, "\n  session %d\n  - %s: %q\n  + %s: %q", i, f.name, f.want, f.name, f.got)
			}
		}
		data := newTemplateData(ex, messages)
		if !strings.Contains(data.System, s.Tag) {
			fmt.Fprintf(&b, "\n  session %d\n  - tag: %q in the system prompt\n  + system: %q", i, s.Tag, clip(data.System))
		}
		if !strings.Contains(data.User, s.User) {
			fmt.Fprintf(&b, "\n  session %d\n  - user: %q\n  + user: %q", i, clip(s.User), clip(data.User))
		}
	}
	return b.String()
}

// check appends the problems of a request to h.problems.
func (h *Handler) check(ex Exchange, req conversation, messages []textMessage, previous *Exchange, turn *Turn) {
	found := req.check(ex.Body)
	expects := []*Expect{h.script.Expect}
	rewrites := false
	if ex.Session >= 0 {
		s := h.script.Sessions[ex.Session]
		rewrites, expects = s.Rewrites, append(expects, s.Expect)
	}
	if turn != nil {
		expects = append(expects, turn.Expect)
	}
	if previous != nil && !rewrites {
		if p := req.checkPrefix(*previous); p != "" {
			found = append(found, p)
		}
	}
	if ex.Session >= 0 && !rewrites && h.wasAnswered(ex) {
		found = append(found, fmt.Sprintf("turn %d was asked for again after its answer", ex.Turn))
	}
	for _, e := range expects {
		found = append(found, e.unmet(ex.Body, messages)...)
		if e != nil && e.Echo && previous != nil {
			if diff := req.checkEcho(*previous); diff != "" {
				found = append(found, "expected the previous answer unchanged: "+diff)
			}
		}
	}
	for _, p := range found {
		h.problems = append(h.problems, fmt.Sprintf("session %q, turn %d: %s", ex.SessionID, ex.Turn, p))
	}
}

// find fills in the session and the turn of a request, and returns its messages. It
// takes the first session of the script whose id, model, tag and user text all match; a
// value that a session leaves out matches every request. The id is X-Session-ID. Without
// this header, it is the part of the model's name after the last @, if a session has that id.
func (h *Handler) find(ex *Exchange, req conversation) []textMessage {
	messages := req.texts()
	ex.Model, ex.Turn = req.common().Model, 0
	for _, m := range messages {
		if m.Role == "assistant" {
			ex.Turn++
		}
	}
	if at := strings.LastIndexByte(ex.Model, '@'); at >= 0 && ex.SessionID == "" {
		if suffix := ex.Model[at+1:]; slices.ContainsFunc(h.script.Sessions, func(s Session) bool { return s.ID == suffix }) {
			ex.SessionID, ex.Model = suffix, ex.Model[:at]
		}
	}
	data := newTemplateData(*ex, messages)
	ex.Session = slices.IndexFunc(h.script.Sessions, func(s Session) bool {
		return (s.ID == "" || s.ID == ex.SessionID) && (s.Model == "" || s.Model == ex.Model) && strings.Contains(data.System, s.Tag) && strings.Contains(data.User, s.User)
	})
	if ex.Session >= 0 {
		s := h.script.Sessions[ex.Session]
		ex.SessionID = cmp.Or(ex.SessionID, s.Tag)
		if s.Rewrites && ex.SessionID != "" {
			ex.Turn = h.countAnswers(*ex)
		}
	}
	return messages
}

// countAnswers counts the requests of a conversation that were answered completely.
func (h *Handler) countAnswers(ex Exchange) int {
	n := 0
	for _, e := range h.conversations[ex.key()] {
		if e.Answered {
			n++
		}
	}
	return n
}

// logOverLimit logs a request that is refused because it exceeds a limit.
func (h *Handler) logOverLimit(ex Exchange, req conversation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.find(&ex, req)
	ex.Status, ex.Fault = http.StatusTooManyRequests, "over a limit"
	h.addToLog(&ex)
}

func (h *Handler) addToLog(ex *Exchange) {
	h.log = append(h.log, ex)
	if ex.SessionID != "" {
		h.conversations[ex.key()] = append(h.conversations[ex.key()], ex)
	}
}

func (ex *Exchange) key() conversationKey { return conversationKey{ex.Session, ex.SessionID} }

// noteFault records in the log entry what a fault does to the answer.
func (ex *Exchange) noteFault(f Fault) {
	switch f.Break {
	case "reset", "silence", "alert":
		ex.Status = 0
	case "":
		ex.Status = cmp.Or(f.Status, http.StatusOK)
	}
	ex.Answered = !f.fails()
	ex.Lost = f.fails() && f.Break != "" && (ex.Status != 0 || f.Break == "silence") // a server that sends nothing may still compute an answer
	if f.fails() || f.Kind != "" || f.Break != "" {
		ex.Fault = f.name()
	}
}

// wasAnswered reports whether this turn already had a complete answer without a fault. It
// reports false for requests without a session id, because their conversations cannot be
// told apart.
func (h *Handler) wasAnswered(ex Exchange) bool {
	return slices.ContainsFunc(h.conversations[ex.key()], func(e *Exchange) bool { return e.Turn == ex.Turn && e.noFault && e.Answered })
}

// previous returns the answered exchange before this one in the same
// conversation, or nil.
func (h *Handler) previous(ex Exchange) *Exchange {
	for _, e := range slices.Backward(h.conversations[ex.key()]) {
		if e.Turn == ex.Turn-1 && e.Answered {
			return e
		}
	}
	return nil
}
