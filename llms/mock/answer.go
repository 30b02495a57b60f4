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

// conversation is a request as its API words it.
type conversation interface {
	model() string
	said() []said // the messages as text, the system prompt first
	tools() json.RawMessage
	limit() int64 // tokens the answer may have, 0: not said
	streamed() bool
	// check returns what is wrong with the request by itself.
	check(body []byte) []string
	// prefix returns how it fails to be the request before, its answer, and more.
	prefix(previous Exchange) string
	// echoed returns what it lacks of the answer before.
	echoed(before Exchange) string
	render(ex Exchange, t Turn) []byte
	failure(status int, code, message string) []byte // an error in the API's words
}

// maxRequest bounds what is read of one request.
const maxRequest = 64 << 20

func (h *Handler) chat(w http.ResponseWriter, r *http.Request, decode func([]byte) (conversation, error)) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		sendError(w, http.StatusBadRequest, vague, "reading the request: "+err.Error())
		return
	}
	req, err := decode(body)
	if err != nil {
		sendError(w, http.StatusBadRequest, vague, "the request is not valid JSON: "+err.Error())
		return
	}
	ex := Exchange{SessionID: r.Header.Get("X-Session-ID"), Session: -1, Body: body, At: time.Now()}
	if wait, why := h.limits.begin(w.Header(), float64(int64(len(body)/4)+req.limit())); why != "" {
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(wait.Milliseconds()+1, 10))
		h.refuse(ex, req)
		sendRaw(w, http.StatusTooManyRequests, "application/json", req.failure(http.StatusTooManyRequests, "rate_limit_exceeded", why))
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

// settle corrects the log where an answer did not come to its end. A client
// that has its answer and asks for the log finds it right without this.
func (h *Handler) settle(entry *Exchange, out sent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	entry.Millis = max(1, time.Since(entry.At).Milliseconds())
	if out == whole || !entry.Answered {
		return // as it was foreseen
	}
	entry.Answered, entry.Lost = false, true
	entry.Fault = cmp.Or(entry.Fault, "client left")
}

// answer finds the turn, checks the request and logs it. The fault is resolved;
// refusal is why there is no answer.
func (h *Handler) answer(ex Exchange, req conversation) (entry *Exchange, fault Fault, refusal string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	messages := h.find(&ex, req)
	entry = &ex
	previous := h.previous(ex)
	turn, refusal := h.turn(ex, messages)
	if req.streamed() {
		refusal = `streaming is not supported: this server sends each answer in one piece; leave out "stream", or set it to false`
	}
	h.check(ex, req, messages, previous, turn)
	h.note(entry)
	key := turnKey{entry.talk(), ex.Turn}
	h.attempts[key]++
	ex.Again = h.attempts[key] > 1
	if refusal == "" && turn.Template {
		filled, err := turn.fill(newScene(ex, messages))
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
		turn.Usage = h.counted(*turn, req, messages, previous)
	}
	if turn.Usage != nil {
		ex.Usage = *turn.Usage
	}
	h.price(entry, req)
	ex.Status, ex.Answer = http.StatusOK, req.render(ex, *turn)
	f := h.strike(key, turn, &h.script.Sessions[ex.Session])
	if h.script.Context > 0 && countPrompt(messages, req.tools()) > h.script.Context {
		f = &Fault{Kind: "overflow_openai"}
	}
	if name := unwanted(ex.Body, h.script.Sessions[ex.Session].Refuses); name != "" {
		f = &Fault{Status: http.StatusBadRequest, Body: string(req.failure(http.StatusBadRequest, "unsupported_parameter",
			fmt.Sprintf("Unsupported parameter: '%s' is not supported with this model.", name)))}
	}
	if f != nil {
		fault = f.resolved(req)
		ex.struckBy(fault)
	} else {
		ex.plain, ex.Answered = true, true
	}
	return entry, fault, ""
}

// unwanted is the first of the refused parameters that a request has.
func unwanted(body []byte, refused []string) string {
	var sent map[string]json.RawMessage
	if len(refused) == 0 || json.Unmarshal(body, &sent) != nil {
		return ""
	}
	for _, name := range refused {
		if _, there := sent[name]; there {
			return name
		}
	}
	return ""
}

// turn is a copy of the script's turn that a request asks for, or why there is none.
func (h *Handler) turn(ex Exchange, messages []said) (*Turn, string) {
	if ex.Session < 0 {
		return nil, fmt.Sprintf("no session of the script matches X-Session-ID %q, model %q%s", ex.SessionID, ex.Model, h.nearMisses(ex, messages))
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
			surplus = fmt.Sprintf("\n  - the end, after %d answers\n  + %s: %s", len(s.Turns), last.Role, clip(last.Text))
		}
		return nil, fmt.Sprintf("session %d of the script has %d turns, turn %d was asked for%s", ex.Session, len(s.Turns), ex.Turn, surplus)
	}
	t := s.Turns[n]
	t.Template = t.Template || s.Template
	return &t, ""
}

// nearMisses shows, for the first sessions, where a request parts from them.
func (h *Handler) nearMisses(ex Exchange, messages []said) string {
	var b strings.Builder
	for i, s := range h.script.Sessions[:min(5, len(h.script.Sessions))] {
		for _, f := range []struct{ name, want, got string }{{"session", s.ID, ex.SessionID}, {"model", s.Model, ex.Model}} {
			if f.want != "" && f.want != f.got {
				fmt.Fprintf(&b, "\n  session %d\n  - %s: %q\n  + %s: %q", i, f.name, f.want, f.name, f.got)
			}
		}
		seen := newScene(ex, messages)
		if !strings.Contains(seen.System, s.Tag) {
			fmt.Fprintf(&b, "\n  session %d\n  - tag: %q in the system prompt\n  + system: %q", i, s.Tag, clip(seen.System))
		}
		if !strings.Contains(seen.User, s.User) {
			fmt.Fprintf(&b, "\n  session %d\n  - user: %q\n  + user: %q", i, clip(s.User), clip(seen.User))
		}
	}
	return b.String()
}

// check notes what is wrong with a request.
func (h *Handler) check(ex Exchange, req conversation, messages []said, previous *Exchange, turn *Turn) {
	where := fmt.Sprintf("session %q, turn %d: ", ex.SessionID, ex.Turn)
	found := req.check(ex.Body)
	rewrites := ex.Session >= 0 && h.script.Sessions[ex.Session].Rewrites
	if previous != nil && !rewrites {
		if p := req.prefix(*previous); p != "" {
			found = append(found, p)
		}
	}
	if ex.Session >= 0 && !rewrites && h.answered(ex) {
		found = append(found, fmt.Sprintf("turn %d was asked for again after its answer", ex.Turn))
	}
	expects := []*Expect{h.script.Expect}
	if ex.Session >= 0 {
		expects = append(expects, h.script.Sessions[ex.Session].Expect)
	}
	if turn != nil {
		expects = append(expects, turn.Expect)
	}
	for _, e := range expects {
		found = append(found, e.unmet(ex.Body, messages)...)
		if e != nil && e.Echo && previous != nil {
			if lost := req.echoed(*previous); lost != "" {
				found = append(found, "expected the answer before to come back as it was: "+lost)
			}
		}
	}
	for _, p := range found {
		h.problems = append(h.problems, where+p)
	}
}

// find fills in which session and turn a request belongs to: by X-Session-ID, by
// what follows the last @ of the model, by a tag in the system prompt.
func (h *Handler) find(ex *Exchange, req conversation) []said {
	messages := req.said()
	ex.Model, ex.Turn = req.model(), 0
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
	seen := newScene(*ex, messages)
	ex.Session = slices.IndexFunc(h.script.Sessions, func(s Session) bool {
		return (s.ID == "" || s.ID == ex.SessionID) && (s.Model == "" || s.Model == ex.Model) && strings.Contains(seen.System, s.Tag) && strings.Contains(seen.User, s.User)
	})
	if ex.Session >= 0 {
		s := h.script.Sessions[ex.Session]
		ex.SessionID = cmp.Or(ex.SessionID, s.Tag)
		if s.Rewrites && ex.SessionID != "" {
			ex.Turn = h.given(*ex)
		}
	}
	return messages
}

// given counts the turns a conversation has had its answer to.
func (h *Handler) given(ex Exchange) int {
	n := 0
	for _, e := range h.talks[ex.talk()] {
		if e.Answered {
			n++
		}
	}
	return n
}

// refuse logs a request that is over the limits.
func (h *Handler) refuse(ex Exchange, req conversation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.find(&ex, req)
	ex.Status, ex.Fault = http.StatusTooManyRequests, "over a limit"
	h.note(&ex)
}

// note puts an exchange into the log.
func (h *Handler) note(ex *Exchange) {
	h.log = append(h.log, ex)
	if ex.SessionID != "" {
		h.talks[ex.talk()] = append(h.talks[ex.talk()], ex)
	}
}

func (ex *Exchange) talk() talkKey { return talkKey{ex.Session, ex.SessionID} }

// struckBy writes into the log entry what a fault makes of the answer.
func (ex *Exchange) struckBy(f Fault) {
	switch f.Break {
	case "reset", "silence", "alert":
		ex.Status = 0
	case "":
		ex.Status = cmp.Or(f.Status, http.StatusOK)
	}
	ex.Answered = !f.fails()
	ex.Lost = f.fails() && f.Break != "" && (ex.Status != 0 || f.Break == "silence") // a server that is silent may be at work
	if f.fails() || f.Kind != "" || f.Break != "" {
		ex.Fault = f.name()
	}
}

// answered tells whether this turn has had a regular answer. Without a session
// id two conversations cannot be told apart, so the question has no answer.
func (h *Handler) answered(ex Exchange) bool {
	return slices.ContainsFunc(h.talks[ex.talk()], func(e *Exchange) bool { return e.Turn == ex.Turn && e.plain && e.Answered })
}

// previous is the last regular exchange of the same conversation.
func (h *Handler) previous(ex Exchange) *Exchange {
	for _, e := range slices.Backward(h.talks[ex.talk()]) {
		if e.Turn == ex.Turn-1 && e.Answered {
			return e
		}
	}
	return nil
}
