package providers

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/llms"
)

// Endpoint is what every provider over HTTP is configured with. Secret values
// are written as "env:NAME" and read through Deps.Getenv.
type Endpoint struct {
	BaseURL string `json:"base_url"` // as the provider's own documentation writes it
	Model   string `json:"model"`
	APIKey  string `json:"api_key"` // "env:NAME"; empty for servers without keys
	Timeout string `json:"timeout"` // of one call, as a Go duration
	// Headers are sent with every call; a value may be "env:NAME".
	Headers map[string]string `json:"headers"`
}

// endpoint is an Endpoint that was checked: how to reach one server, and the
// values that must not appear in any message about it.
type endpoint struct {
	base    string // without a slash at its end
	model   string
	key     string
	headers map[string]string
	secrets []string
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
		base: strings.TrimRight(cfg.BaseURL, "/"), model: cfg.Model, timeout: timeout, headers: map[string]string{},
		// A redirect would send the key somewhere nobody configured.
		http: &http.Client{
			Transport:     deps.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if cfg.APIKey != "" {
		if !strings.HasPrefix(cfg.APIKey, "env:") {
			return nil, errors.New(`api_key must name an environment variable, as "env:NAME": keys do not belong in configuration`)
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

// resolve turns "env:NAME" into the variable's value and remembers it as a
// secret; anything else is taken as it is.
func (e *endpoint) resolve(field, value string, getenv func(string) string) (string, error) {
	name, isEnv := strings.CutPrefix(value, "env:")
	if !isEnv {
		return value, nil
	}
	got := ""
	if getenv != nil {
		got = strings.TrimSpace(getenv(name))
	}
	if got == "" {
		return "", &llms.Error{Class: llms.ClassAuth, Message: fmt.Sprintf("%s: environment variable %s is not set: export it and run again", field, name)}
	}
	e.secrets = append(e.secrets, got)
	return got, nil
}

// Model is the configured model name.
func (e *endpoint) Model() string { return e.model }

// keepHeaders flattens an answer's headers, without cookies and secrets.
func (e *endpoint) keepHeaders(h http.Header) map[string]string {
	out := map[string]string{}
	for name, values := range h {
		if name != "Set-Cookie" {
			out[name] = e.mask(strings.Join(values, ", "))
		}
	}
	return out
}

// mask hides every configured secret in s.
func (e *endpoint) mask(s string) string {
	for _, secret := range e.secrets {
		s = strings.ReplaceAll(s, secret, "***")
	}
	return s
}

// redact hides secrets: servers like to quote the key they refuse.
func (e *endpoint) redact(err *llms.Error) *llms.Error {
	err.Message = e.mask(err.Message)
	if err.Err != nil && e.mask(err.Err.Error()) != err.Err.Error() {
		err.Err = nil
	}
	return err
}
