package providers_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/schemas"
)

// errorFor returns the error that a client returns for a server's answer.
func errorFor(t *testing.T, status int, body string, headers map[string]string) *llms.Error {
	t.Helper()
	fault := &mock.Fault{Status: status, Body: body, Headers: headers}
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{Fault: fault}}}}})
	_, err := client(t, srv.URL, nil).Chat(t.Context(), llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
	e, ok := errors.AsType[*llms.Error](err)
	if !ok {
		t.Fatalf("%d %s: got %v, want a classified error", status, body, err)
	}
	return e
}

func TestWireContextOverflow(t *testing.T) {
	for message, limit := range map[string]int64{
		"This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens.":                                           128000,
		"The decoder prompt (length 9000) is longer than the maximum model length of 4096. Make sure that max_model_len is no smaller.":                     4096,
		"'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 4000 of them.": 4096,
		"The input (9000 tokens) is longer than the model's context length (4096 tokens).":                                                                  4096,
		"Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 9000 tokens.":                            4096,
		"prompt is too long: 212345 tokens > 200000 maximum":                                                                                                200000,
		"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length":                                                200000,
		"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).":                                                           1048576,
		"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length":                                            32768,
		"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.":                                                         4081,
		"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`":                  4096,
		"The model is loaded with context length of only 4096 tokens, which is not enough.":                                                                 4096,
		"Range of input length should be [1, 30720]":                                                                                                        30720,
		"Invalid request: Your request exceeded model token limit: 8192":                                                                                    8192,
		"This model's maximum prompt length is 131072 but the request contains 140000 tokens.":                                                              131072,
		"Input is too long for requested model.":                                                                                                            0,
		"Please reduce the length of the messages or completion.":                                                                                           0,
		"Prompt exceeds max length": 0,
	} {
		e := errorFor(t, 400, `{"error":{"type":"invalid_request_error","message":"`+message+`"}}`, nil)
		if e.Class != llms.ClassContext || e.ContextLimit != limit || e.Retryable() {
			t.Errorf("%s: %s, limit %d", message, e.Class, e.ContextLimit)
		}
	}
	// The limit can also be in numeric fields, and an error code can name the class.
	if e := errorFor(t, 400, `{"error":{"code":400,"message":"no","type":"x","n_prompt_tokens":9000,"n_ctx":4096}}`, nil); e.Class != llms.ClassContext || e.ContextLimit != 4096 {
		t.Errorf("numeric fields: %+v", e)
	}
	if e := errorFor(t, 400, `{"error":{"code":"context_length_exceeded","message":"no"}}`, nil); e.Class != llms.ClassContext {
		t.Errorf("code: %+v", e)
	}
	for _, message := range []string{
		"max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
		"Unsupported parameter: temperature", "messages: the field is required",
	} {
		if e := errorFor(t, 400, `{"error":{"message":"`+message+`"}}`, nil); e.Class != llms.ClassBadRequest {
			t.Errorf("%s: %s", message, e.Class)
		}
	}
}

func TestWireRefusalClasses(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		body    string
		headers map[string]string
		class   llms.Class
		wait    time.Duration
		again   bool
	}{
		"throttle":             {429, `{"error":{"code":"rate_limit_exceeded","message":"slow down"}}`, map[string]string{"Retry-After": "3"}, llms.ClassRateLimit, 3 * time.Second, true},
		"throttle, ms":         {429, `{"error":{"message":"slow down"}}`, map[string]string{"Retry-After-Ms": "40"}, llms.ClassRateLimit, 40 * time.Millisecond, true},
		"throttle, date":       {429, `{}`, map[string]string{"Date": "Fri, 02 Jan 2026 10:00:00 GMT", "Retry-After": "Fri, 02 Jan 2026 10:00:05 GMT"}, llms.ClassRateLimit, 5 * time.Second, true},
		"quota by code":        {429, `{"error":{"code":"insufficient_quota","message":"x"}}`, nil, llms.ClassQuota, 0, false},
		"quota by word":        {429, `{"error":{"message":"You exceeded your current quota"}}`, nil, llms.ClassQuota, 0, false},
		"quota of a minute":    {429, `{"error":{"code":"insufficient_quota","message":"INSUFFICIENT QUOTA: 600 tokens per minute"}}`, nil, llms.ClassRateLimit, 0, true},
		"code beats the words": {429, `{"error":{"code":"rate_limit_exceeded","message":"see your plan and billing"}}`, nil, llms.ClassRateLimit, 0, true},
		"concurrency":          {429, `{"error":{"message":"Too many concurrent requests for this model"}}`, nil, llms.ClassConcurrency, 0, true},
		"concurrency, code":    {429, `{"error":{"code":"concurrency_limit_exceeded","message":"x"}}`, nil, llms.ClassConcurrency, 0, true},
		"overload":             {529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, nil, llms.ClassOverload, 0, true},
		"overload, 503":        {503, `busy`, map[string]string{"Retry-After": "2"}, llms.ClassOverload, 2 * time.Second, true},
		"server":               {500, `{"error":{"message":"boom"}}`, nil, llms.ClassServer, 0, true},
		"refusal, code":        {400, `{"error":{"code":"content_filter","message":"The response was filtered"}}`, nil, llms.ClassRefusal, 0, false},
		"refusal, word":        {400, `{"error":{"message":"This request violates our usage policies"}}`, nil, llms.ClassRefusal, 0, false},
		"refusal, moderation":  {403, `{"error":{"code":403,"message":"This model requires moderation and your input was flagged"}}`, nil, llms.ClassRefusal, 0, false},
		"key":                  {403, `{"error":{"message":"no access"}}`, nil, llms.ClassAuth, 0, false},
	} {
		e := errorFor(t, c.status, c.body, c.headers)
		if e.Class != c.class || e.RetryAfter != c.wait || e.Retryable() != c.again {
			t.Errorf("%s: %s, wait %s, retryable %v; want %s", name, e.Class, e.RetryAfter, e.Retryable(), c.class)
		}
	}
}

func TestWireUnrequestedStream(t *testing.T) {
	for _, kind := range []string{"text/event-stream; charset=utf-8", "application/json"} {
		fault := &mock.Fault{ContentType: kind, Body: "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n"}
		srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{Fault: fault}}}}})
		for _, provider := range []string{"openai", "anthropic"} {
			c, err := llms.Providers.Build(provider, map[string]any{"base_url": srv.URL, "model": "m"}, llms.Deps{Getenv: getenv})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Chat(t.Context(), llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
			if llms.ClassOf(err) != llms.ClassBadRequest || !strings.Contains(err.Error(), "turn streaming off") {
				t.Errorf("%s, %s: %v", provider, kind, err)
			}
		}
		srv.Reset() // the test requested the same turn twice
	}
}

func TestWireUsageForms(t *testing.T) {
	want := schemas.Usage{Prompt: 100, Completion: 7, Cached: 64, Reasoning: 3}
	message := `"model":"m","choices":[{"message":{"content":"x"},"finish_reason":"stop"`
	for name, body := range map[string]string{
		"OpenAI":         message + `}],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":3}}`,
		"in the choice":  message + `,"usage":{"prompt_tokens":100,"completion_tokens":7,"cached_tokens":64,"reasoning_tokens":3}}]`,
		"vendor field":   message + `}],"x_groq":{"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_cache_hit_tokens":64,"reasoning_tokens":3}}`,
		"other spelling": message + `}],"usage":{"input_tokens":100,"output_tokens":7,"cached_tokens":64,"reasoning_tokens":3}`,
		"as fractions":   message + `}],"usage":{"prompt_tokens":100.0,"completion_tokens":7.0,"prompt_tokens_details":{"cached_tokens":64.0},"completion_tokens_details":{"reasoning_tokens":3}}`,
		"null":           message + `}],"usage":null`,
		"missing":        message + `}]`,
		"nothing usable": message + `}],"usage":{"total_tokens":5}`,
	} {
		srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{Fault: &mock.Fault{Body: "{" + body + "}"}}}}}})
		resp, err := client(t, srv.URL, nil).Chat(t.Context(), llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(body, "100") {
			if resp.Reply.Usage != nil {
				t.Errorf("%s: invented usage %+v", name, resp.Reply.Usage)
			}
			continue
		}
		if diff := cmp.Diff(&want, resp.Reply.Usage); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
