package mock

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"time"
)

// delivery says how much of an answer was sent.
type delivery int

const (
	notSent delivery = iota
	cutOff
	complete
)

// transmit sends a regular answer, changed by a resolved fault, and returns how much of the
// answer it sent.
func transmit(w http.ResponseWriter, r *http.Request, answer []byte, f Fault) delivery {
	if !sleep(r.Context(), f.Delay) {
		return cutOff // the server had begun to compute the answer
	}
	for name, value := range f.Headers {
		w.Header().Set(name, value)
	}
	kind := cmp.Or(f.ContentType, "application/json")
	switch f.Break {
	case "":
		if f.Status != 0 || f.Body != "" {
			sendRaw(w, cmp.Or(f.Status, http.StatusOK), kind, []byte(f.Body))
			return notSent
		}
		return write(w, r, kind, answer)
	case "error":
		sendRaw(w, http.StatusOK, kind, []byte(f.Body))
		return notSent
	case "gzip":
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(answer)
		_ = z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		return write(w, r, kind, packed.Bytes())
	case "gzip_broken":
		w.Header().Set("Content-Encoding", "gzip")
		write(w, r, kind, answer)
		return cutOff
	}
	return breakOff(w, r, f, kind, answer)
}

// write sends an answer. The last bytes are sent when the handler returns. A client that has
// read the whole answer therefore finds the exchange in the log as answered, and its request
// no longer counts as a parallel one.
func write(w http.ResponseWriter, r *http.Request, kind string, answer []byte) delivery {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(http.StatusOK)
	if r.Context().Err() != nil {
		return cutOff
	}
	if _, err := w.Write(answer); err != nil {
		return cutOff
	}
	return complete
}

// breakOff sends all of an answer, a part of it or nothing, and breaks the connection. If it
// waits for the client to disconnect, the wait also ends when the server is closed.
func breakOff(w http.ResponseWriter, r *http.Request, f Fault, kind string, answer []byte) delivery {
	body := answer[:len(answer)/2]
	out := cutOff
	switch f.Break {
	case "reset", "alert":
		return hangUp(w, f.Break, notSent)
	case "silence":
		<-r.Context().Done()
		return notSent
	case "headers":
		body = nil
	case "truncate":
		sendRaw(w, http.StatusOK, kind, body)
		return cutOff
	case "drip":
		w.Header().Set("Content-Type", kind)
		for i := range answer {
			if _, err := w.Write(answer[i : i+1]); err != nil || http.NewResponseController(w).Flush() != nil || !sleep(r.Context(), f.Every) {
				return cutOff
			}
		}
		return complete
	case "reset_end":
		w.Header().Set("Connection", "close") // otherwise the reset would also hit the next request
		body, out = answer, complete
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = w.Write(body)
	_ = http.NewResponseController(w).Flush()
	if f.Break == "stall" || f.Break == "headers" {
		<-r.Context().Done()
		return cutOff
	}
	return hangUp(w, f.Break, out)
}

// tlsAlert is a fatal handshake_failure record (RFC 8446, section 6).
var tlsAlert = []byte{21, 3, 3, 0, 2, 2, 40}

// hangUp closes the connection of a request, and returns out.
func hangUp(w http.ResponseWriter, how string, out delivery) delivery {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return out
	}
	if tlsConn, ok := conn.(*tls.Conn); ok {
		conn = tlsConn.NetConn()
	}
	switch how {
	case "alert":
		_, _ = conn.Write(tlsAlert)
	case "reset", "reset_body", "reset_end":
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	_ = conn.Close()
	return out
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
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
