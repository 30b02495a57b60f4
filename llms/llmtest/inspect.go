package llmtest

import (
	"net/http"
)

// Totals are what a server has seen: its side of the account.
type Totals struct {
	Requests   int            `json:"requests"`
	Answered   int            `json:"answered"` // regular answers that were sent whole
	Faults     map[string]int `json:"faults"`
	Prompt     int64          `json:"prompt_tokens"` // of the regular answers
	Completion int64          `json:"completion_tokens"`
	Peak       int            `json:"peak"` // requests at once
}

// Totals adds up the log.
func (h *Handler) Totals() Totals {
	h.limits.mu.Lock()
	t := Totals{Faults: map[string]int{}, Peak: h.limits.peak}
	h.limits.mu.Unlock()
	for _, ex := range h.Log() {
		t.Requests++
		if ex.Fault != "" {
			t.Faults[ex.Fault]++
		}
		if !ex.Answered {
			continue
		}
		t.Answered++
		t.Prompt += ex.Prompt
		t.Completion += ex.Completion
	}
	return t
}

// Reset forgets the log, the problems and the faults that have struck.
func (h *Handler) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log, h.problems, h.struck, h.attempts = nil, nil, map[strikeKey]int{}, map[turnKey]int{}
}

// inspect serves what lies below /__: the log, the totals, the problems, reset.
func (h *Handler) inspect(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /__log":
		send(w, http.StatusOK, map[string]any{"exchanges": h.Log()})
	case "GET /__totals":
		send(w, http.StatusOK, h.Totals())
	case "GET /__problems":
		send(w, http.StatusOK, map[string]any{"problems": append([]string{}, h.Problems()...)})
	case "POST /__reset":
		h.Reset()
		send(w, http.StatusOK, map[string]any{"ok": true})
	default:
		sendError(w, http.StatusNotFound, "not_found", "known are GET /__log, /__totals, /__problems and POST /__reset")
	}
}
