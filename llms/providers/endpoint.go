package providers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Endpoint holds the settings of every provider. Secrets have the form "env:NAME" or
// "file:PATH".
type Endpoint struct {
	BaseURL string `json:"base_url"` // as the provider's own documentation writes it
	Model   string `json:"model"`
	APIKey  string `json:"api_key"` // "env:NAME" or "file:PATH"; empty for servers without keys
	Timeout string `json:"timeout"` // of one call, as a Go duration
	// Headers are sent with every call; a value may be "env:NAME" or "file:PATH".
	Headers map[string]string `json:"headers"`
}

// endpoint is a validated Endpoint with its secrets, which must not appear in any message.
type endpoint struct {
	base    string // without a trailing slash
	model   string
	key     string
	keyRef  string // where the key comes from: "env:NAME", "file:PATH" or ""
	headers map[string]string
	secrets []string
	tokens  *tokens // source of Entra ID tokens; nil if calls use the key or no authentication
	timeout time.Duration
	http    *http.Client
}

func newEndpoint(cfg Endpoint, deps llms.Deps) (*endpoint, error) {
	u, err := url.Parse(cfg.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New(`base_url must be a full http or https URL such as "http://127.0.0.1:8000/v1"`)
	}
	if u.User != nil {
		return nil, errors.New(`base_url must not hold credentials: use api_key: "env:NAME"`)
	}
	if cfg.Model == "" {
		return nil, errors.New("model is missing: name the model as the server calls it")
	}
	timeout, err := time.ParseDuration(cfg.Timeout)
	if err != nil || timeout <= 0 {
		return nil, fmt.Errorf("timeout is %q: give a positive duration such as 300s", cfg.Timeout)
	}
	e := &endpoint{
		base: strings.TrimRight(cfg.BaseURL, "/"), model: cfg.Model, keyRef: cfg.APIKey, timeout: timeout, headers: map[string]string{},
		// A redirect would send the key to another server.
		http: &http.Client{
			Transport:     deps.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if cfg.APIKey != "" {
		if !llms.IsSecretRef(cfg.APIKey) {
			return nil, errors.New(`api_key must say where the key is, as "env:NAME" or "file:PATH": keys do not belong in the configuration`)
		}
		if e.key, err = e.resolve("api_key", cfg.APIKey, deps.Getenv); err != nil {
			return nil, err
		}
	}
	for name, value := range cfg.Headers {
		if e.headers[name], err = e.resolve("headers."+name, value, deps.Getenv); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// resolve returns the secret to which "env:NAME" or "file:PATH" refers and adds it to
// e.secrets. It returns any other value unchanged.
func (e *endpoint) resolve(field, value string, getenv func(string) string) (string, error) {
	if !llms.IsSecretRef(value) {
		return value, nil
	}
	got, err := llms.Secret(value, getenv)
	if err != nil {
		return "", &llms.Error{Class: llms.ClassAuth, Message: field + ": " + err.Error(), Err: err}
	}
	if len(got) >= llms.MinSecret {
		e.secrets = append(e.secrets, got)
	}
	return got, nil
}

// Model returns the configured name of the model.
func (e *endpoint) Model() string { return e.model }

// chat makes one call for any provider: call sends the request with the provider's library,
// and decode decodes the answer.
func (e *endpoint) chat(ctx context.Context, r llms.Request, ex *exchange, call func(context.Context) error,
	decode func(raw []byte, history []llms.Message) (schemas.Reply, *llms.Error)) (llms.Response, error) {
	callCtx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	start := time.Now()
	err := call(callCtx)
	took := time.Since(start).Milliseconds()
	resp := e.response(ex)
	if ex.status == 0 || ex.readErr != nil {
		return resp, e.transportError(ctx, callCtx, ex, err)
	}
	if ex.status != http.StatusOK {
		return resp, e.redact(statusError(ex.status, ex.header, ex.received))
	}
	if failure := checkNotStreamed(ex); failure != nil {
		return resp, e.redact(failure)
	}
	reply, failure := decode(ex.received, r.Messages)
	if failure != nil {
		failure.RetryAfter = retryAfter(ex.header)
		return resp, e.redact(failure)
	}
	reply.LLMMillis, reply.LLMCalls = &took, 1
	reply.CallAsText = len(reply.Calls) == 0 && hasCallAsText(reply.Message, r.Tools)
	resp.Reply = reply
	return resp, nil
}

// response returns the bytes of an exchange. It masks secrets only in error responses,
// because servers quote the keys that they refuse.
func (e *endpoint) response(ex *exchange) llms.Response {
	body := ex.received
	if ex.status != http.StatusOK && body != nil {
		body = []byte(e.mask(string(body)))
	}
	return llms.Response{Request: ex.sent, Raw: body, Status: ex.status}
}

// mask replaces every configured secret in s.
func (e *endpoint) mask(s string) string {
	for _, secret := range e.secrets {
		s = replaceSecret(s, secret)
	}
	if e.tokens != nil {
		s = e.tokens.mask(s)
	}
	return s
}

func replaceSecret(s, secret string) string { return strings.ReplaceAll(s, secret, "***") }

// redact masks secrets in an error, because servers quote the keys that they refuse. For a
// refused key it adds where the key comes from.
func (e *endpoint) redact(err *llms.Error) *llms.Error {
	err.Message = e.mask(err.Message)
	switch {
	case err.Class != llms.ClassAuth || err.Status == 0 || e.tokens != nil:
	case e.keyRef == "":
		err.Message += " (no api_key is set, at " + e.base + ")"
	default:
		err.Message += " (the key of " + e.keyRef + ", at " + e.base + ")"
	}
	if err.Err != nil && e.mask(err.Err.Error()) != err.Err.Error() {
		err.Err = nil
	}
	return err
}
