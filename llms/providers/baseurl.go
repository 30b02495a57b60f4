package providers

// Detection of a wrong base_url, which often lacks the version or contains the path of an
// endpoint. The requests cost nothing because they reach no model.

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

// api contains the paths of an API below the base URL.
type api struct {
	models, chat string
	roots        []string // suffixes that a base URL may lack
}

var (
	openaiAPI    = api{models: "/models", chat: "/chat/completions", roots: []string{"/v1", "/api/v1", "/openai/v1"}}
	anthropicAPI = api{models: "/v1/models", chat: "/v1/messages", roots: []string{"/anthropic"}}
)

// endpointPath matches the paths of endpoints, which users often include in a base URL.
var endpointPath = regexp.MustCompile(`(/chat)?/completions$|/messages$|/responses$|/models$`)

// findAPI returns an error if the API a is not below the base URL, but below a similar one. It
// returns nil if the API is below the base URL or cannot be found.
func (e *endpoint) findAPI(ctx context.Context, a api) *llms.Error {
	if e.hasEndpoint(ctx, http.MethodGet, e.base+a.models) || e.hasEndpoint(ctx, http.MethodPost, e.base+a.chat) {
		return nil
	}
	similar := e.similarURLs(a)
	for _, probe := range []struct{ method, path string }{{http.MethodGet, a.models}, {http.MethodPost, a.chat}} {
		for _, base := range similar {
			if e.hasEndpoint(ctx, probe.method, base+probe.path) {
				return e.redact(&llms.Error{Class: llms.ClassNotFound, Status: http.StatusNotFound, Message: fmt.Sprintf(
					"POST %s%s does not exist, but %s%s answers: set base_url to %s", e.base, a.chat, base, probe.path, base)})
			}
		}
	}
	return nil
}

// similarURLs returns the base URLs that the user may have meant, most likely first.
func (e *endpoint) similarURLs(a api) []string {
	stripped := endpointPath.ReplaceAllString(e.base, "")
	if a.chat == anthropicAPI.chat {
		stripped = strings.TrimSuffix(stripped, "/v1")
	}
	var out []string
	add := func(base string) {
		for _, root := range append([]string{""}, a.roots...) {
			if candidate := base + root; candidate != e.base && !slices.Contains(out, candidate) {
				out = append(out, candidate)
			}
		}
	}
	add(stripped)
	if u, err := url.Parse(stripped); err == nil {
		add(u.Scheme + "://" + u.Host)
	}
	return out
}

// hasEndpoint reports whether an endpoint exists, even if it refuses the request. A GET must
// return a list of models or refuse the key. A POST, whose body is invalid JSON, may return
// any error except an unknown path.
func (e *endpoint) hasEndpoint(ctx context.Context, method, address string) bool {
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
		return unknownModel.MatchString(string(ex.received))
	default:
		return s >= 400 && s != http.StatusMethodNotAllowed
	}
}

func listsModels(raw []byte) bool {
	var list []json.RawMessage
	var object struct {
		Data []json.RawMessage `json:"data"`
	}
	return json.Unmarshal(raw, &list) == nil || json.Unmarshal(raw, &object) == nil && object.Data != nil
}
