package mock

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
)

// Totals sums up the log of a server.
type Totals struct {
	Tally
	Faults    map[string]int   `json:"faults"`
	Peak      int              `json:"peak"` // maximum number of concurrent requests
	BySession map[string]Tally `json:"by_session"`
	ByModel   map[string]Tally `json:"by_model"`
}

// Tally sums up requests. Usage has the tokens of answers that were sent completely. Lost has
// the tokens of answers that broke off, which vendors bill although clients do not learn
// their usage.
type Tally struct {
	Requests int `json:"requests"`
	Answered int `json:"answered"` // regular answers that were sent completely
	Retried  int `json:"retried"`  // requests for a turn that was requested before
	Usage
	Lost Usage `json:"lost"`
	// Billed and LostBilled are the costs of Usage and Lost, with the script's prices.
	Billed     Dollars `json:"billed_usd"`
	LostBilled Dollars `json:"lost_billed_usd"`
}

func (t *Tally) add(ex Exchange) {
	t.Requests++
	if ex.Again {
		t.Retried++
	}
	switch {
	case ex.Answered:
		t.Answered++
		t.Usage.add(ex.Usage)
		t.Billed.add(ex.Billed.exact)
	case ex.Lost:
		t.Lost.add(ex.Usage)
		t.LostBilled.add(ex.Billed.exact)
	}
}

// Totals adds up the log.
func (h *Handler) Totals() Totals {
	h.limits.mu.Lock()
	t := Totals{Faults: map[string]int{}, Peak: h.limits.peak, BySession: map[string]Tally{}, ByModel: map[string]Tally{}}
	h.limits.mu.Unlock()
	for _, ex := range h.Log() {
		if ex.Fault != "" {
			t.Faults[ex.Fault]++
		}
		t.add(ex)
		name := cmp.Or(ex.SessionID, fmt.Sprintf("#%d", ex.Session))
		for key, in := range map[string]map[string]Tally{name: t.BySession, ex.Model: t.ByModel} {
			tally := in[key]
			tally.add(ex)
			in[key] = tally
		}
	}
	return t
}

// Reset clears the log, the problems, the prompt cache and the counts of faults.
func (h *Handler) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log, h.problems = nil, nil
	h.cache = promptCache{minimum: h.script.CacheMinimum, kept: map[[32]byte]keptPrefix{}}
	h.conversations, h.faultCounts, h.attempts = map[conversationKey][]*Exchange{}, map[faultKey]int{}, map[turnKey]int{}
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

// Problems lists the mistakes of clients: requests that match no session, more
// turns than the script has, unanswered tool calls, messages out of order,
// rewritten prefixes, and unmet expectations.
func (h *Handler) Problems() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.problems...)
}

// TakeProblems returns the problems and clears them, for tests that cause problems on purpose.
func (h *Handler) TakeProblems() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.problems
	h.problems = nil
	return p
}

// inspect serves the paths below /__: the log, the totals, the problems, reset.
func (h *Handler) inspect(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + strings.TrimPrefix(r.URL.Path, "/v1") {
	case "GET /__log":
		send(w, http.StatusOK, map[string]any{"exchanges": h.Log()})
	case "GET /__totals":
		send(w, http.StatusOK, h.Totals())
	case "GET /__problems":
		send(w, http.StatusOK, map[string]any{"problems": h.Problems()})
	case "POST /__reset":
		h.Reset()
		send(w, http.StatusOK, map[string]any{"ok": true})
	default:
		sendError(w, http.StatusNotFound, "not_found", "known are GET /__log, /__totals, /__problems and POST /__reset")
	}
}
