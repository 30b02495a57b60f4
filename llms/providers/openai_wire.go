package providers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// maxResponse bounds how much of an answer is read.
const maxResponse = 32 << 20

var errTooLong = fmt.Errorf("the answer is longer than %d MiB", maxResponse>>20)

// exchange is one HTTP call at the SDK's HTTPDoer seam: it patches the body,
// keeps the bytes and headers of both directions, and bounds what is read.
type exchange struct {
	http    *http.Client
	headers map[string]string
	session string
	patch   func(body map[string]any) error // nil: the body goes out as it is

	sent, received []byte
	header         http.Header
	status         int   // 0: no answer came
	readErr        error // the answer's body broke off
	promptSHA      string
	promptCount    int
}

// Do implements the SDK's HTTPDoer.
func (ex *exchange) Do(req *http.Request) (*http.Response, error) {
	for name, value := range ex.headers {
		req.Header.Set(name, value)
	}
	if ex.session != "" {
		req.Header.Set("X-Session-ID", ex.session)
	}
	if ex.patch != nil {
		if err := ex.rewrite(req); err != nil {
			return nil, err
		}
	}
	resp, err := ex.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	ex.status, ex.header = resp.StatusCode, resp.Header
	ex.received, ex.readErr = io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if len(ex.received) > maxResponse {
		ex.received, ex.readErr = ex.received[:maxResponse], errTooLong
	}
	if ex.readErr != nil {
		return nil, ex.readErr
	}
	resp.Body = io.NopCloser(bytes.NewReader(ex.received))
	return resp, nil
}

// rewrite replaces the SDK's body with the patched one and hashes its messages.
func (ex *exchange) rewrite(req *http.Request) error {
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	var body map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&body); err != nil {
		return fmt.Errorf("reading the request body: %w", err)
	}
	if err := ex.patch(body); err != nil {
		return err
	}
	if ex.sent, err = schemas.CanonicalJSON(body); err != nil {
		return err
	}
	prompt, err := schemas.CanonicalJSON(body["messages"])
	if err != nil {
		return err
	}
	ex.promptSHA = schemas.HashBytes(prompt)
	if list, ok := body["messages"].([]any); ok {
		ex.promptCount = len(list)
	}
	req.ContentLength = int64(len(ex.sent))
	req.Body = io.NopCloser(bytes.NewReader(ex.sent))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(ex.sent)), nil }
	return nil
}

// patchBody adds what the SDK's structs drop: a temperature of 0, explicit
// empty contents, unknown fields of earlier assistant messages, extra fields.
func (c *OpenAI) patchBody(body map[string]any, r llms.Request) error {
	delete(body, "stream") // false is the default, and some servers refuse the word
	if r.Sampling.Temperature != nil {
		body["temperature"] = *r.Sampling.Temperature
	}
	if r.Sampling.TopP != nil {
		body["top_p"] = *r.Sampling.TopP
	}
	maps.Copy(body, r.Sampling.Extra)
	list, ok := body["messages"].([]any)
	if !ok || len(list) != len(r.Messages) {
		return errors.New("request body does not hold the message list")
	}
	for i, m := range r.Messages {
		msg, ok := list[i].(map[string]any)
		if !ok {
			return errors.New("request body holds a message that is no object")
		}
		patchMessage(msg, m)
	}
	return nil
}

// patchMessage writes the content explicitly (null only beside tool calls) and
// echoes what the server sent with this message under the names it used.
func patchMessage(msg map[string]any, m llms.Message) {
	msg["content"] = m.Content
	if m.Content == "" && len(m.ToolCalls) > 0 {
		msg["content"] = nil
	}
	if len(m.Raw) == 0 {
		return
	}
	var received map[string]any
	dec := json.NewDecoder(bytes.NewReader(m.Raw))
	dec.UseNumber()
	if dec.Decode(&received) != nil {
		return // recorded by something other than this provider: nothing to echo
	}
	if parts, ok := received["content"].([]any); ok {
		msg["content"] = parts // typed parts may be signed
	}
	addMissing(msg, received)
	sent, _ := msg["tool_calls"].([]any)
	got, _ := received["tool_calls"].([]any)
	if len(sent) != len(got) {
		return
	}
	for i := range sent {
		s, ok1 := sent[i].(map[string]any)
		g, ok2 := got[i].(map[string]any)
		if !ok1 || !ok2 {
			continue
		}
		addMissing(s, g)
		if sf, ok := s["function"].(map[string]any); ok {
			if gf, ok := g["function"].(map[string]any); ok {
				addMissing(sf, gf)
			}
		}
	}
}

// addMissing copies the fields of from that to does not have; nulls say nothing.
func addMissing(to, from map[string]any) {
	for name, value := range from {
		if _, has := to[name]; !has && value != nil {
			to[name] = value
		}
	}
}

// keepHeaders flattens the answer's headers, without cookies and secrets.
func (c *OpenAI) keepHeaders(h http.Header) map[string]string {
	out := map[string]string{}
	for name, values := range h {
		if name != "Set-Cookie" {
			out[name] = c.mask(strings.Join(values, ", "))
		}
	}
	return out
}

// mask hides every configured secret in s.
func (c *OpenAI) mask(s string) string {
	for _, secret := range c.secrets {
		s = strings.ReplaceAll(s, secret, "***")
	}
	return s
}
