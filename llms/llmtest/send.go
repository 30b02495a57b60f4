package llmtest

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"time"
)

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// breakOff sends part of the answer or nothing and fails the connection.
func breakOff(w http.ResponseWriter, r *http.Request, how string, answer []byte) {
	half := answer[:len(answer)/2]
	switch how {
	case "truncate":
		sendRaw(w, http.StatusOK, "application/json", half)
		return
	case "stall", "cut":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = w.Write(half)
		_ = http.NewResponseController(w).Flush()
		if how == "stall" {
			<-r.Context().Done()
		}
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok && how == "reset" {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func send(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"error":{"message":"encoding the answer"}}`)
	}
	sendRaw(w, status, "application/json", raw)
}

func sendError(w http.ResponseWriter, status int, code, message string) {
	send(w, status, map[string]any{"error": map[string]any{"code": code, "type": "invalid_request_error", "message": message}})
}

func sendRaw(w http.ResponseWriter, status int, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
