package providers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// maxResponse limits how much of an answer is read, in bytes.
const maxResponse = 32 << 20

var errTooLong = fmt.Errorf("the answer is longer than %d MiB", maxResponse>>20)

// exchange is the HTTP client of an SDK for one call. It patches the request body, stores the
// bytes of the request and the answer, and limits how much of the answer is read.
type exchange struct {
	http    *http.Client
	headers map[string]string
	session string
	tokens  *tokens                         // nil if the SDK sets the key
	patch   func(body map[string]any) error // changes the body; nil: no change

	sent, received []byte
	header         http.Header
	status         int   // 0 if there was no answer
	readErr        error // of the answer's body
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
	resp, err := ex.send(req)
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

// send makes the call. A refused token is replaced once, because it may have been revoked.
func (ex *exchange) send(req *http.Request) (*http.Response, error) {
	if ex.tokens == nil {
		return ex.http.Do(req)
	}
	token, err := ex.tokens.get(req.Context(), "")
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := ex.http.Do(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	_ = resp.Body.Close()
	if token, err = ex.tokens.get(req.Context(), token); err != nil {
		return nil, err
	}
	again := req.Clone(req.Context())
	again.Header.Set("Authorization", "Bearer "+token)
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return ex.http.Do(again)
}

// checkNotStreamed returns an error if the answer is an event stream. Requests never ask for a
// stream, and the decoders expect one JSON document.
func checkNotStreamed(ex *exchange) *llms.Error {
	kind, _, _ := mime.ParseMediaType(ex.header.Get("Content-Type"))
	if kind != "text/event-stream" && !bytes.HasPrefix(bytes.TrimSpace(ex.received), []byte("data:")) {
		return nil
	}
	return &llms.Error{Class: llms.ClassBadRequest, Status: ex.status,
		Message: "the server streams its answer although the request did not ask for a stream: turn streaming off in the server, or in the proxy before it"}
}

// rewrite replaces the SDK's request body with the patched one.
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
	req.ContentLength = int64(len(ex.sent))
	req.Body = io.NopCloser(bytes.NewReader(ex.sent))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(ex.sent)), nil }
	return nil
}
