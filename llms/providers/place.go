package providers

// Where a server's API is: base_url often lacks the version, or has the path of an
// endpoint behind it. What is asked here costs nothing, as no model can read it.

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/llms"
)

// api is where a server has what: paths behind a base URL.
type api struct {
	models, chat string
	roots        []string // that a base URL may lack at its end
}

var (
	openaiAPI    = api{models: "/models", chat: "/chat/completions", roots: []string{"/v1", "/api/v1", "/openai/v1"}}
	anthropicAPI = api{models: "/v1/models", chat: "/v1/messages", roots: []string{"/anthropic"}}
)

// surplus is what is often copied along with a base URL.
var surplus = regexp.MustCompile(`(/chat)?/completions$|/messages$|/responses$|/models$`)

// misplaced is the error of a base URL below which a is not found, while it is found
// at another one that is close; nil if a is there, or if that cannot be told.
func (e *endpoint) misplaced(ctx context.Context, a api) *llms.Error {
	if e.answers(ctx, http.MethodGet, e.base+a.models) || e.answers(ctx, http.MethodPost, e.base+a.chat) {
		return nil
	}
	near := e.near(a)
	for _, ask := range []struct{ method, path string }{{http.MethodGet, a.models}, {http.MethodPost, a.chat}} {
		for _, base := range near {
			if e.answers(ctx, ask.method, base+ask.path) {
				return e.redact(&llms.Error{Class: llms.ClassNotFound, Status: http.StatusNotFound, Message: fmt.Sprintf(
					"there is no POST %s%s, but %s%s answers: set base_url to %s", e.base, a.chat, base, ask.path, base)})
			}
		}
	}
	return nil
}

// near are the base URLs that may be meant, likeliest first.
func (e *endpoint) near(a api) []string {
	plain := surplus.ReplaceAllString(e.base, "")
	if a.chat == anthropicAPI.chat {
		plain = strings.TrimSuffix(plain, "/v1")
	}
	var out []string
	add := func(base string) {
		for _, root := range append([]string{""}, a.roots...) {
			if near := base + root; near != e.base && !slices.Contains(out, near) {
				out = append(out, near)
			}
		}
	}
	add(plain)
	if u, err := url.Parse(plain); err == nil {
		add(u.Scheme + "://" + u.Host)
	}
	return out
}

// answers reports whether a server has an endpoint, even if it refuses the request:
// a GET must be answered with a list of models or a refused key, a POST, whose body
// no JSON parser takes, with anything but an unknown path.
func (e *endpoint) answers(ctx context.Context, method, address string) bool {
	body := ""
	if method == http.MethodPost {
		body = "{"
	}
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	if e.key != "" {
		req.Header.Set("Authorization", "Bearer "+e.key)
		req.Header.Set("X-Api-Key", e.key)
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	ex := &exchange{http: e.http, headers: e.headers, tokens: e.tokens}
	resp, err := ex.Do(req)
	if err != nil || isHTML(ex.received) {
		return false
	}
	_ = resp.Body.Close()
	switch s := ex.status; {
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		return true
	case method == http.MethodGet:
		return s == http.StatusOK && listsModels(ex.received)
	case s == http.StatusNotFound:
		return noModel.MatchString(string(ex.received))
	default:
		return s >= 400 && s != http.StatusMethodNotAllowed
	}
}

// listsModels tells a list of models from whatever else a server answers with 200.
func listsModels(raw []byte) bool {
	var list []json.RawMessage
	var object struct {
		Data []json.RawMessage `json:"data"`
	}
	return json.Unmarshal(raw, &list) == nil || json.Unmarshal(raw, &object) == nil && object.Data != nil
}
