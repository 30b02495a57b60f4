package providers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/mock"
)

func TestErrors(t *testing.T) {
	answer := func(status int, body string) mock.Fault { return mock.Fault{Status: status, Body: body} }
	cases := map[string]struct {
		fault mock.Fault
		class llms.Class
		wait  time.Duration
	}{
		"401":                 {answer(401, `{"error":{"code":"invalid_api_key","message":"bad key `+secret+`"}}`), llms.ClassAuth, 0},
		"403 plain":           {answer(403, `no`), llms.ClassAuth, 0},
		"key in a 400":        {answer(400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`), llms.ClassAuth, 0},
		"402":                 {answer(402, `{"error":{"message":"Insufficient Balance"}}`), llms.ClassQuota, 0},
		"404 model":           {answer(404, `{"error":{"message":"The model 'm' does not exist","type":"NotFoundError","code":404}}`), llms.ClassNotFound, 0},
		"400 model":           {answer(400, `{"error":{"message":"model 'm' not found"}}`), llms.ClassNotFound, 0},
		"404 page":            {mock.Fault{Status: 404, Body: "<html>nginx</html>", ContentType: "text/html"}, llms.ClassNotFound, 0},
		"429 seconds":         {mock.Fault{Status: 429, Body: `{"error":{"code":"rate_limit_exceeded"}}`, Headers: map[string]string{"Retry-After": "7"}}, llms.ClassRateLimit, 7 * time.Second},
		"429 milliseconds":    {mock.Fault{Status: 429, Body: `{}`, Headers: map[string]string{"retry-after-ms": "250", "Retry-After": "9"}}, llms.ClassRateLimit, 250 * time.Millisecond},
		"429 date":            {mock.Fault{Status: 429, Body: `{}`, Headers: map[string]string{"Date": "Fri, 02 Jan 2026 10:00:00 GMT", "Retry-After": "Fri, 02 Jan 2026 10:00:30 GMT"}}, llms.ClassRateLimit, 30 * time.Second},
		"429 absurd wait":     {mock.Fault{Status: 429, Body: `{}`, Headers: map[string]string{"Retry-After": "1e300"}}, llms.ClassRateLimit, 24 * time.Hour},
		"429 quota":           {answer(429, `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota, please check your plan and billing details."}}`), llms.ClassQuota, 0},
		"429 quota by word":   {answer(429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details."}}`), llms.ClassQuota, 0},
		"429 quota a minute":  {answer(429, `{"error":{"code":"insufficient_quota","message":"INSUFFICIENT QUOTA: 60 requests per minute"}}`), llms.ClassRateLimit, 0},
		"413":                 {answer(413, `{"error":{"type":"request_too_large"}}`), llms.ClassContext, 0},
		"overflow, code":      {answer(400, `{"error":{"code":"context_length_exceeded","message":"too long","type":"invalid_request_error"}}`), llms.ClassContext, 0},
		"overflow, vllm":      {answer(400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","code":400}`), llms.ClassContext, 0},
		"overflow, newer":     {answer(400, `{"error":{"message":"The decoder prompt (length 9000) is longer than the maximum model length of 4096.","type":"BadRequestError","code":400}}`), llms.ClassContext, 0},
		"overflow, claude":    {answer(400, `{"error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`), llms.ClassContext, 0},
		"overflow, gemini":    {answer(400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`), llms.ClassContext, 0},
		"overflow, llama.cpp": {answer(400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`), llms.ClassContext, 0},
		"overflow in a 500":   {answer(500, `{"error":{"message":"prompt is too long"}}`), llms.ClassContext, 0},
		"400":                 {answer(400, `{"error":{"message":"Unsupported parameter: temperature","type":"invalid_request_error"}}`), llms.ClassBadRequest, 0},
		"422 detail":          {answer(422, `{"detail":[{"loc":["body","seed"],"msg":"extra fields not permitted"}]}`), llms.ClassBadRequest, 0},
		"408":                 {answer(408, ``), llms.ClassTimeout, 0},
		"500":                 {answer(500, `{"error":{"message":"boom"}}`), llms.ClassServer, 0},
		"502 page":            {mock.Fault{Status: 502, Body: "<html>Bad Gateway</html>", ContentType: "text/html"}, llms.ClassServer, 0},
		"529":                 {answer(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), llms.ClassOverload, 0},
		"error in a 200":      {answer(200, `{"error":{"message":"Provider returned error","code":502}}`), llms.ClassServer, 0},
		"limit in a 200":      {answer(200, `{"error":{"message":"slow down","code":429}}`), llms.ClassRateLimit, 0},
		"overflow in a 200":   {answer(200, `{"object":"error","message":"maximum context length is 10 tokens"}`), llms.ClassContext, 0},
		"error in a choice":   {answer(200, `{"choices":[{"error":{"code":500,"message":"x"},"message":{"content":""}}]}`), llms.ClassServer, 0},
		"no choices":          {answer(200, `{"choices":[]}`), llms.ClassServer, 0},
		"no body":             {answer(200, ` `), llms.ClassServer, 0},
		"web page":            {answer(200, `<!doctype html>`), llms.ClassNotFound, 0},
		"redirect":            {mock.Fault{Status: 308, Body: "x", Headers: map[string]string{"Location": "https://elsewhere/v1"}}, llms.ClassBadRequest, 0},
		"truncated JSON":      {mock.Fault{Break: "truncate"}, llms.ClassServer, 0},
		"cut body":            {mock.Fault{Break: "cut"}, llms.ClassServer, 0},
		"reset":               {mock.Fault{Break: "reset"}, llms.ClassServer, 0},
		"stalled body":        {mock.Fault{Break: "stall"}, llms.ClassTimeout, 0},
		"stalled headers":     {mock.Fault{Delay: time.Hour}, llms.ClassTimeout, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{Content: ptr("hello"), Fault: &c.fault}}}}})
			with := map[string]any{}
			if c.class == llms.ClassTimeout && c.fault.Status == 0 {
				with["timeout"] = "200ms"
			}
			_, err := client(t, srv.URL, with).Chat(t.Context(), llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
			e, ok := errors.AsType[*llms.Error](err)
			if !ok {
				t.Fatalf("got %v, want a classified error", err)
			}
			if e.Class != c.class || e.RetryAfter != c.wait {
				t.Errorf("class %s, wait %s (%v); want %s, %s", e.Class, e.RetryAfter, err, c.class, c.wait)
			}
			if strings.Contains(err.Error(), secret) || (e.Err != nil && strings.Contains(e.Err.Error(), secret)) {
				t.Errorf("the message contains the key: %v", err)
			}
			if e.Message == "" {
				t.Error("no message")
			}
		})
	}
}

// For servers that need no key, users set any short text. Masking it must not damage the
// words of messages.
func TestShortKeysDoNotDamageMessages(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	fault := mock.Fault{Status: 400, Body: `{"error":{"message":"unexpected text"}}`}
	srv := mocktest.Serve(t, mock.Script{Key: "x", Sessions: []mock.Session{{Turns: []mock.Turn{{Content: ptr("hello"), Fault: &fault}}}}})
	_, err := client(t, srv.URL, map[string]any{"api_key": "file:" + key}).Chat(t.Context(), llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
	if err == nil || !strings.Contains(err.Error(), "unexpected text") {
		t.Errorf("got %v", err)
	}
}

// The error for a refused key names where the key was set, because there may be several and
// a variable may be outdated.
func TestRefusedKeyNamesItsSource(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"bad key %s","code":"invalid_api_key"}}`, r.Header.Get("Authorization"))
	}))
	defer srv.Close()
	for ref, want := range map[string]string{"env:TEST_KEY": "the key of env:TEST_KEY", "": "no api_key is set"} {
		c := client(t, srv.URL, map[string]any{"api_key": ref})
		_, err := c.Chat(t.Context(), llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
		for _, err := range []error{err, c.(llms.Checker).Check(t.Context())} {
			if llms.ClassOf(err) != llms.ClassAuth || !strings.Contains(err.Error(), want+", at "+srv.URL) || strings.Contains(err.Error(), "sk-") {
				t.Errorf("%q: %v", ref, err)
			}
		}
	}
}

func TestUnreachableServer(t *testing.T) {
	// The port is bound, so that no other process gets it, but nothing listens on it.
	taken, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(taken)
	if err := syscall.Bind(taken, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(taken)
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/v1", name.(*syscall.SockaddrInet4).Port)
	c := client(t, url, nil)
	_, err = c.Chat(t.Context(), llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
	if llms.ClassOf(err) != llms.ClassUnreachable || !strings.Contains(err.Error(), "is the server running at "+url) {
		t.Errorf("got %v", err)
	}
	if err := c.(llms.Checker).Check(t.Context()); llms.ClassOf(err) != llms.ClassUnreachable {
		t.Errorf("check: %v", err)
	}
}

func TestCheck(t *testing.T) {
	srv := mocktest.Serve(t, mock.Script{Key: "another", Models: []string{"m"}})
	if err := client(t, srv.URL, nil).(llms.Checker).Check(t.Context()); llms.ClassOf(err) != llms.ClassAuth || strings.Contains(err.Error(), secret) {
		t.Errorf("refused key: %v", err)
	}
	srv = mocktest.Serve(t, mock.Script{Key: secret, Models: []string{"m"}})
	if err := client(t, srv.URL, nil).(llms.Checker).Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCancelledCallIsNotAnLLMError(t *testing.T) {
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{Fault: &mock.Fault{Break: "stall"}}}}}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := http.DefaultTransport.RoundTrip(r)
		cancel() // after half of the answer has arrived
		return resp, err
	})
	c, err := llms.Providers.Build("openai", map[string]any{"base_url": srv.URL, "model": "m"}, llms.Deps{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Chat(ctx, llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
	if !errors.Is(err, context.Canceled) || llms.ClassOf(err) != "" {
		t.Errorf("got %v", err)
	}
}

func TestResponseIsBounded(t *testing.T) {
	transport := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: endless{}}, nil
	})
	c, err := llms.Providers.Build("openai", map[string]any{"base_url": "http://x/v1", "model": "m"}, llms.Deps{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Chat(t.Context(), llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
	if llms.ClassOf(err) != llms.ClassServer || !strings.Contains(err.Error(), "longer than 32 MiB") {
		t.Errorf("got %v", err)
	}
}
