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

// faultClasses is what each named fault of the scripted server must look like to
// whoever asked; "" is an answer as if nothing had been.
var faultClasses = map[string]llms.Class{
	"overflow_openai": llms.ClassContext, "overflow_anthropic": llms.ClassContext, "overflow_vllm": llms.ClassContext, "overflow_gemini": llms.ClassContext,
	"unsupported_parameter": llms.ClassRefused, "unprocessable": llms.ClassRefused, "redirect": llms.ClassRefused,
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

// Every fault there is, over real HTTP, seen by both providers: twice, then the
// same call succeeds; the class, the wait and both sides' accounts are right.
func TestEveryFaultIsClassifiedAndAccounted(t *testing.T) {
	for _, kind := range mock.Kinds() {
		want, known := faultClasses[kind]
		if !known {
			t.Errorf("nobody says what %s looks like", kind)
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
	srv.Close() // what stalled has seen its client leave
	got := srv.Totals()
	if got.Requests != 3 || got.Faults[kind] != 2 || int64(got.Answered) != answered || got.Prompt != 100*answered || got.Completion != 7*answered {
		t.Errorf("%d answered; totals %+v", answered, got)
	}
}

// How long to wait is said in four ways.
func TestFaultsThatSayHowLong(t *testing.T) {
	for kind, want := range map[string]time.Duration{"rate_limit": time.Second, "rate_limit_date": time.Second, "rate_limit_ms": 20 * time.Millisecond, "rate_limit_bare": 0} {
		srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{Fault: &mock.Fault{Kind: kind}}}}}})
		_, err := client(t, srv.URL, nil).Chat(t.Context(), llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
		if e := asError(err); e == nil || e.RetryAfter != want {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// Silence from the start, after the headers and in the middle are three things to
// whoever looks for the reason; each is a call that may be made again, and may
// have been billed.
func TestStallsAreToldApart(t *testing.T) {
	for kind, want := range map[string]string{
		"stall_start":   "no sign of an answer within 2s",
		"stall_headers": "an answer was begun, but nothing of it came within 2s",
		"stall_body":    "an answer was begun, but it stopped after ",
		"slow_loris":    "an answer was begun, but it stopped after ",
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
					t.Errorf("what the client left is in the account as %+v", got)
				}
			})
		}
	}
}

// A fault may strike the server's requests by their number, whoever makes them.
func TestFaultsByNumber(t *testing.T) {
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{Content: ptr("x")}}}},
		Faults: []mock.Fault{{Kind: "overloaded", On: []int{2, 4}}, {Kind: "server_error", On: []int{5}}}})
	var struck []int
	for n := 1; n <= 6; n++ {
		_, err := client(t, srv.URL, nil).Chat(t.Context(), llms.Request{SessionID: string(rune('A' + n)), Messages: []llms.Message{{Role: "user", Content: "go"}}})
		if e := asError(err); e != nil {
			struck = append(struck, n, e.Status)
		}
	}
	if want := []int{2, 529, 4, 529, 5, 500}; !slices.Equal(struck, want) {
		t.Errorf("struck %d, want %d", struck, want)
	}
}

// What stalls ends when its client leaves or the server closes: no goroutine
// outlives it.
func TestStallsLeaveNothing(t *testing.T) {
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
		srv.Close() // while the other still waits
		if err := <-done; err == nil {
			t.Errorf("%s: an answer", kind)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	goleak.VerifyNone(t, running)
}

// A fault with a probability strikes by seed, conversation and turn: the same in
// every run, whoever comes first.
func TestFaultsByChanceRepeat(t *testing.T) {
	strikes := func(seed int64, sessions []string) map[string]bool {
		srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{Content: ptr("x")}}}},
			Faults: []mock.Fault{{Kind: "overloaded", P: 0.3, Seed: seed}}})
		out := map[string]bool{}
		for _, id := range sessions {
			_, err := client(t, srv.URL, nil).Chat(t.Context(), llms.Request{SessionID: id, Messages: []llms.Message{{Role: "user", Content: "go"}}})
			out[id] = err != nil
		}
		return out
	}
	var ids, back []string
	for i := range 60 {
		id := string(rune('A' + i))
		ids, back = append(ids, id), append([]string{id}, back...)
	}
	first, again, other := strikes(1, ids), strikes(1, back), strikes(2, ids)
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
		t.Errorf("%d of 60 struck with probability 0.3; another seed is the same: %v", n, same)
	}
}

func asError(err error) *llms.Error {
	e, _ := errors.AsType[*llms.Error](err)
	return e
}
