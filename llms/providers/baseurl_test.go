package providers

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/llms"
)

// pathServer is a server with endpoints at some paths. The handler other answers all other
// paths. It fails the test if it gets a request that it could bill.
type pathServer struct {
	t     *testing.T
	paths []string
	other http.HandlerFunc
}

func (p pathServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method == http.MethodPost && json.Valid(body) {
		p.t.Errorf("%s %s could be billed: %s (%v)", r.Method, r.URL.Path, body, err)
	}
	switch {
	case !slices.Contains(p.paths, r.URL.Path):
		p.other(w, r)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"m"}]}`)
	case r.Method == http.MethodPost:
		http.Error(w, `{"error":{"message":"the body is not JSON"}}`, http.StatusBadRequest)
	default:
		http.Error(w, `{"detail":"Method Not Allowed"}`, http.StatusMethodNotAllowed)
	}
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, `{"detail":"Not Found"}`, http.StatusNotFound)
}

func webPage(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "<!doctype html><html></html>")
}

func unexpected(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, `{"error":"Unexpected endpoint or method. (`+r.Method+` `+r.URL.Path+`)"}`)
}

func parsesFirst(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		http.Error(w, `{"error":"bad JSON"}`, http.StatusBadRequest)
	} else {
		notFound(w, r)
	}
}

func redirects(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "https://example.com/login", http.StatusFound)
}

func TestWrongBaseURLs(t *testing.T) {
	usual, noModels := []string{"/v1/models", "/v1/chat/completions"}, []string{"/v1/chat/completions"}
	claude := []string{"/anthropic/v1/messages"}
	for name, c := range map[string]struct {
		provider string
		paths    []string
		other    http.HandlerFunc
		base     string
		want     string // the recommended base URL, "" if there is none
	}{
		"right":                      {"openai", usual, notFound, "/v1", ""},
		"a slash":                    {"openai", usual, notFound, "/v1/", ""},
		"no version":                 {"openai", usual, notFound, "", "/v1"},
		"no version, a slash":        {"openai", usual, notFound, "/", "/v1"},
		"the endpoint":               {"openai", usual, notFound, "/v1/chat/completions", "/v1"},
		"the endpoint, no version":   {"openai", usual, notFound, "/chat/completions", "/v1"},
		"the list of models":         {"openai", usual, notFound, "/v1/models", "/v1"},
		"another path":               {"openai", usual, notFound, "/v2", "/v1"},
		"a web page":                 {"openai", usual, webPage, "", "/v1"},
		"an error with 200":          {"openai", usual, unexpected, "", "/v1"},
		"a redirect":                 {"openai", usual, redirects, "", "/v1"},
		"below a path":               {"openai", []string{"/api/v1/models", "/api/v1/chat/completions"}, notFound, "/api", "/api/v1"},
		"below a path, from above":   {"openai", []string{"/api/v1/models"}, notFound, "", "/api/v1"},
		"no models, right":           {"openai", noModels, notFound, "/v1", ""},
		"no models, no version":      {"openai", noModels, notFound, "", "/v1"},
		"no models, the endpoint":    {"openai", noModels, notFound, "/v1/chat/completions", "/v1"},
		"no models, a web page":      {"openai", noModels, webPage, "", "/v1"},
		"without a version at all":   {"openai", []string{"/chat/completions"}, notFound, "", ""},
		"it parses before it routes": {"openai", noModels, parsesFirst, "", ""},
		"nothing there":              {"openai", nil, notFound, "", ""},
		"messages":                   {"anthropic", claude, notFound, "/anthropic", ""},
		"messages, version":          {"anthropic", claude, notFound, "/anthropic/v1", ""},
		"messages, the endpoint":     {"anthropic", claude, notFound, "/anthropic/v1/messages", "/anthropic"},
		"messages, from above":       {"anthropic", claude, notFound, "", "/anthropic"},
		"messages, a web page":       {"anthropic", claude, webPage, "", "/anthropic"},
		"messages at the root":       {"anthropic", []string{"/v1/messages"}, notFound, "/v1/messages", "/"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(pathServer{t, c.paths, c.other})
			defer srv.Close()
			at := Endpoint{BaseURL: srv.URL + c.base, Model: "m", Timeout: "10s"}
			var client llms.Checker
			var err error
			if c.provider == "anthropic" {
				client, err = NewAnthropic(AnthropicConfig{Endpoint: at, Cache: "off"}, llms.Deps{})
			} else {
				client, err = NewOpenAI(OpenAIConfig{Endpoint: at, Dialect: DefaultDialect()}, llms.Deps{})
			}
			if err != nil {
				t.Fatal(err)
			}
			err = client.Check(t.Context())
			want := "set base_url to " + srv.URL + strings.TrimSuffix(c.want, "/")
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v", err)
			case c.want != "" && (llms.ClassOf(err) != llms.ClassNotFound || !strings.HasSuffix(err.Error(), want)):
				t.Errorf("got %v, want %s", err, want)
			}
			if lister, ok := client.(*OpenAI); ok && c.want != "" {
				if _, err := lister.Models(t.Context()); err == nil || !strings.HasSuffix(err.Error(), want) {
					t.Errorf("listing: got %v, want %s", err, want)
				}
			}
		})
	}
}
