package providers_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/mock"
)

// faultClasses maps each named fault of the mock server to the error class that a client
// must report, "" if the client gets a normal answer.
var faultClasses = map[string]llms.Class{
	"overflow_openai": llms.ClassContext, "overflow_anthropic": llms.ClassContext, "overflow_vllm": llms.ClassContext, "overflow_gemini": llms.ClassContext,
	"unsupported_parameter": llms.ClassBadRequest, "unprocessable": llms.ClassBadRequest, "redirect": llms.ClassBadRequest,
	"auth": llms.ClassAuth, "forbidden": llms.ClassAuth,
	"payment": llms.ClassQuota, "quota": llms.ClassQuota,
	"model_not_found": llms.ClassNotFound, "web_page": llms.ClassNotFound,
	"request_timeout": llms.ClassTimeout, "stall_start": llms.ClassTimeout, "stall_headers": llms.ClassTimeout, "stall_body": llms.ClassTimeout, "slow_loris": llms.ClassTimeout,
	"too_large":  llms.ClassContext,
	"rate_limit": llms.ClassRateLimit, "rate_limit_date": llms.ClassRateLimit, "rate_limit_ms": llms.ClassRateLimit, "rate_limit_bare": llms.ClassRateLimit,
	"conflict": llms.ClassServer, "server_error": llms.ClassServer, "bad_gateway": llms.ClassServer, "unavailable": llms.ClassOverload, "overloaded": llms.ClassOverload,
	"error_in_200": llms.ClassServer, "reset": llms.ClassServer, "reset_body": llms.ClassServer, "cut": llms.ClassServer, "truncated_json": llms.ClassServer,
	"tls_port": llms.ClassUnreachable, "gzip_broken": llms.ClassServer,
	"reset_end": "", "wrong_type": "", "gzip": "",
}

// Each named fault occurs twice over real HTTP, with both providers, and then the call
// succeeds. The error class, the wait and the accounts of client and server are right.
func TestEveryFaultIsClassifiedAndAccounted(t *testing.T) {
	for _, kind := range mock.Kinds() {
		want, known := faultClasses[kind]
		if !known {
			t.Errorf("faultClasses lacks %s", kind)
			continue
		}
		for provider, build := range map[string]func(*testing.T, string, map[string]any) llms.Client{"openai": client, "anthropic": messagesClient} {
			t.Run(kind+"/"+provider, func(t *testing.T) {
				t.Parallel()
				faultTwice(t, kind, want, build)
			})
		}
	}
}

func faultTwice(t *testing.T, kind string, want llms.Class, build func(*testing.T, string, map[string]any) llms.Client) {
	srv := mocktest.Serve(t, mock.Script{Key: secret, Sessions: []mock.Session{{Turns: []mock.Turn{{
		Content: ptr("hello, and a little more"), Usage: &mock.Usage{Prompt: 100, Completion: 7}, Fault: &mock.Fault{Kind: kind, Times: 2},
	}}}}})
	patient := build(t, srv.URL, map[string]any{"timeout": "5m"})
	faulted := patient
	if want == llms.ClassTimeout && kind != "request_timeout" {
		faulted = build(t, srv.URL, map[string]any{"timeout": "700ms"})
	}
	answered := int64(0)
	for n, c := range []llms.Client{faulted, faulted, patient} {
		r, err := c.Chat(t.Context(), llms.Request{SessionID: "s1", Messages: []llms.Message{{Role: "user", Content: "go"}}})
		if n == 2 && err != nil || n < 2 && llms.ClassOf(err) != want {
			t.Fatalf("call %d: %v (class %q), want class %q", n, err, llms.ClassOf(err), want)
		}
		if err == nil {
			answered++
			if r.Reply.Message != "hello, and a little more" || r.Reply.Usage == nil || r.Reply.Usage.Prompt != 100 {
				t.Errorf("call %d: %+v", n, r.Reply)
			}
		}
	}
	srv.Close() // stalled handlers have seen their clients leave
	got := srv.Totals()
	if got.Requests != 3 || got.Faults[kind] != 2 || int64(got.Answered) != answered || got.Prompt != 100*answered || got.Completion != 7*answered {
		t.Errorf("%d answered; totals %+v", answered, got)
	}
}

// A server can say in four ways how long to wait.
func TestRetryAfterForms(t *testing.T) {
	for kind, want := range map[string]time.Duration{"rate_limit": time.Second, "rate_limit_date": time.Second, "rate_limit_ms": 20 * time.Millisecond, "rate_limit_bare": 0} {
		srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{Fault: &mock.Fault{Kind: kind}}}}}})
		_, err := client(t, srv.URL, nil).Chat(t.Context(), llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
		if e := asError(err); e == nil || e.RetryAfter != want {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// Errors distinguish a server that stalls before the headers, after them or in the body.
// Each of these calls can be retried and may have been billed.
func TestStallsAreDistinguished(t *testing.T) {
	for kind, want := range map[string]string{
		"stall_start":   "no answer within 2s",
		"stall_headers": "the answer began, but its body did not arrive within 2s",
		"stall_body":    "the answer began, but only ",
		"slow_loris":    "the answer began, but only ",
	} {
		for provider, build := range map[string]func(*testing.T, string, map[string]any) llms.Client{"openai": client, "anthropic": messagesClient} {
			t.Run(kind+"/"+provider, func(t *testing.T) {
				t.Parallel()
				srv := mocktest.Serve(t, mock.Script{Key: secret, Sessions: []mock.Session{{Turns: []mock.Turn{{
					Content: ptr("hello"), Usage: &mock.Usage{Prompt: 100, Completion: 7}, Fault: &mock.Fault{Kind: kind},
				}}}}})
				_, err := build(t, srv.URL, map[string]any{"timeout": "2s"}).Chat(t.Context(), llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
				if e := asError(err); e == nil || e.Class != llms.ClassTimeout || !e.Retryable() || !strings.Contains(e.Message, want) {
					t.Errorf("%v, want %q", err, want)
				}
				srv.Close()
				if got := srv.Totals(); got.Answered != 0 || got.Lost.Prompt != 100 || got.Lost.Completion != 7 {
					t.Errorf("the abandoned answer is counted as %+v", got)
				}
			})
		}
	}
}

// A fault can be bound to the number of a request, whichever client sends it.
func TestFaultsByNumber(t *testing.T) {
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{Content: ptr("x")}}}},
		Faults: []mock.Fault{{Kind: "overloaded", On: []int{2, 4}}, {Kind: "server_error", On: []int{5}}}})
	var failed []int
	for n := 1; n <= 6; n++ {
		_, err := client(t, srv.URL, nil).Chat(t.Context(), llms.Request{SessionID: string(rune('A' + n)), Messages: []llms.Message{{Role: "user", Content: "go"}}})
		if e := asError(err); e != nil {
			failed = append(failed, n, e.Status)
		}
	}
	if want := []int{2, 529, 4, 529, 5, 500}; !slices.Equal(failed, want) {
		t.Errorf("failed requests and their status: %d, want %d", failed, want)
	}
}

// A stalled answer ends when the client leaves or the server closes, and leaves no goroutine.
func TestStallsLeaveNoGoroutines(t *testing.T) {
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	running := goleak.IgnoreCurrent()
	for _, kind := range []string{"stall_start", "stall_headers", "stall_body", "slow_loris"} {
		srv := mocktest.Listen(mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{Content: ptr("x"), Fault: &mock.Fault{Kind: kind}}}}}})
		ctx := t.Context()
		done := make(chan error, 1)
		go func() {
			_, err := client(t, srv.URL, nil).Chat(ctx, llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
			done <- err
		}()
		_, err := client(t, srv.URL, map[string]any{"timeout": "50ms"}).Chat(ctx, llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
		if llms.ClassOf(err) != llms.ClassTimeout {
			t.Errorf("%s: %v", kind, err)
		}
		srv.Close() // while the other client still waits
		if err := <-done; err == nil {
			t.Errorf("%s: got an answer", kind)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	goleak.VerifyNone(t, running)
}

// Whether a random fault occurs depends only on seed, conversation and turn, so it is the same
// in every run, whatever the order of requests.
func TestRandomFaultsAreReproducible(t *testing.T) {
	failures := func(seed int64, sessions []string) map[string]bool {
		srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{Content: ptr("x")}}}},
			Faults: []mock.Fault{{Kind: "overloaded", P: 0.3, Seed: seed}}})
		out := map[string]bool{}
		for _, id := range sessions {
			_, err := client(t, srv.URL, nil).Chat(t.Context(), llms.Request{SessionID: id, Messages: []llms.Message{{Role: "user", Content: "go"}}})
			out[id] = err != nil
		}
		return out
	}
	var ids, reversed []string
	for i := range 60 {
		id := string(rune('A' + i))
		ids, reversed = append(ids, id), append([]string{id}, reversed...)
	}
	first, again, other := failures(1, ids), failures(1, reversed), failures(2, ids)
	n, same := 0, true
	for _, id := range ids {
		if first[id] {
			n++
		}
		if first[id] != again[id] {
			t.Errorf("session %s: %v, then %v", id, first[id], again[id])
		}
		same = same && first[id] == other[id]
	}
	if n < 6 || n > 32 || same {
		t.Errorf("%d of 60 requests failed with probability 0.3; another seed gave the same faults: %v", n, same)
	}
}

func asError(err error) *llms.Error {
	e, _ := errors.AsType[*llms.Error](err)
	return e
}
