package middle_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/middle"
)

// Numbers such as G3 in the names of tests are rows of docs/internals/parity.md.

func ask(t *testing.T, c llms.Client, session string) error {
	t.Helper()
	_, err := c.Chat(t.Context(), llms.Request{SessionID: session})
	return err
}

func newRoutedClient(t *testing.T, tries uint, endpoints ...middle.Endpoint) llms.Client {
	t.Helper()
	c, err := middle.Wrap(endpoints, middle.Config{Retry: middle.RetryConfig{MaxTries: tries}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Conversations are distributed by weight and stay with the endpoint that has cached their prompt.
func TestG3ConversationsAreSpreadAndSticky(t *testing.T) {
	a, b, more := &steps{}, &steps{}, &steps{}
	two := newRoutedClient(t, 1, middle.Endpoint{Client: a, Name: "a"}, middle.Endpoint{Client: b, Name: "b", Weight: 3})
	var onA []string
	for i := range 2000 {
		session, before := fmt.Sprint(i), len(a.at)
		for range 3 {
			if err := ask(t, two, session); err != nil {
				t.Fatal(err)
			}
		}
		switch len(a.at) - before {
		case 3:
			onA = append(onA, session)
		case 0:
		default:
			t.Fatalf("conversation %s was split between two endpoints", session)
		}
	}
	if len(onA) < 440 || len(onA) > 560 {
		t.Errorf("%d of 2000 conversations went to an endpoint with weight 1 of 4", len(onA))
	}
	// A third endpoint takes conversations from both, and none moves between those two.
	c := &steps{}
	three := newRoutedClient(t, 1, middle.Endpoint{Client: more, Name: "a"}, middle.Endpoint{Client: b, Name: "b", Weight: 3}, middle.Endpoint{Client: c, Name: "c"})
	for i := range 2000 {
		session, before := fmt.Sprint(i), len(more.at)
		if err := ask(t, three, session); err != nil {
			t.Fatal(err)
		}
		if len(more.at) > before && !slices.Contains(onA, session) {
			t.Fatalf("conversation %s moved from b to a", session)
		}
	}
}

func TestRouteSkipsFailingServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := &steps{}, &steps{}
		c := newRoutedClient(t, 5, middle.Endpoint{Client: bad, Name: "bad", Weight: 1e9}, middle.Endpoint{Client: good, Name: "good", Weight: 1e-9})
		bad.errs = slices.Repeat([]error{&llms.Error{Class: llms.ClassServer, Status: 500}}, 4)
		if err := ask(t, c, "s"); err != nil || len(bad.at) != 3 || len(good.at) != 1 {
			t.Errorf("%v: %d calls of the failing server, %d of the other", err, len(bad.at), len(good.at))
		}
		if err := ask(t, c, "s"); err != nil || len(bad.at) != 3 {
			t.Errorf("%v: a failed endpoint got a call too early: %d", err, len(bad.at))
		}
		time.Sleep(31 * time.Second) // one trial call, which fails
		if err := ask(t, c, "s"); err != nil || len(bad.at) != 4 {
			t.Errorf("%v: %d calls", err, len(bad.at))
		}
		time.Sleep(31 * time.Second)
		if err := ask(t, c, "s"); err != nil || len(bad.at) != 5 || len(good.at) != 3 {
			t.Errorf("%v: the conversation did not return: %d, %d", err, len(bad.at), len(good.at))
		}
		// One failure is enough if the server is unreachable. Refusals and cancellations do not count.
		bad.errs = []error{&llms.Error{Class: llms.ClassUnreachable}}
		if err := ask(t, c, "s"); err != nil || len(bad.at) != 6 || len(good.at) != 4 {
			t.Errorf("%v: %d, %d", err, len(bad.at), len(good.at))
		}
		time.Sleep(31 * time.Second)
		bad.errs = []error{nil, &llms.Error{Class: llms.ClassRateLimit}, &llms.Error{Class: llms.ClassRateLimit}, &llms.Error{Class: llms.ClassRateLimit},
			context.Canceled, context.Canceled, context.Canceled, nil}
		for range 5 {
			_ = ask(t, c, "s")
		}
		if len(good.at) != 4 {
			t.Errorf("the conversation moved to another endpoint without a failure")
		}
	})
}

func TestRouteSaysWhenAllFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := slices.Repeat([]error{&llms.Error{Class: llms.ClassUnreachable, Message: "no route"}}, 20)
		c := newRoutedClient(t, 2, middle.Endpoint{Client: &steps{errs: down}, Name: "one"}, middle.Endpoint{Client: &steps{errs: down}, Name: "two"})
		if err := ask(t, c, "s"); llms.ClassOf(err) != llms.ClassUnreachable || !strings.Contains(err.Error(), "no route") {
			t.Errorf("got %v", err)
		}
		start := time.Now()
		err := ask(t, c, "s")
		if llms.ClassOf(err) != llms.ClassUnreachable || time.Since(start) != 30*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

// Two endpoints with the same address and different keys each get a share.
func TestKeysOfOneServerShareTheConversations(t *testing.T) {
	a, b := &steps{}, &steps{}
	two := newRoutedClient(t, 1, middle.Endpoint{Client: a, Name: "same"}, middle.Endpoint{Client: b, Name: "same"})
	for i := range 400 {
		session, before := fmt.Sprint(i), len(a.at)
		for range 2 {
			if err := ask(t, two, session); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(a.at) - before; n == 1 {
			t.Fatalf("conversation %s was split between two endpoints", session)
		}
	}
	if len(a.at) < 300 || len(b.at) < 300 {
		t.Errorf("%d and %d calls", len(a.at), len(b.at))
	}
}

// Canceled calls do not count as failures of an endpoint.
func TestCanceledCallsAreNotFailures(t *testing.T) {
	a, b := &steps{}, &steps{}
	two := newRoutedClient(t, 1, middle.Endpoint{Client: a, Name: "a"}, middle.Endpoint{Client: b, Name: "b"})
	session := ""
	for i := 0; len(a.at) == 0; i++ {
		session = fmt.Sprint(i)
		if err := ask(t, two, session); err != nil {
			t.Fatal(err)
		}
	}
	a.errs, b.at = slices.Repeat([]error{context.Canceled}, 10), nil
	for range 10 {
		_ = ask(t, two, session)
	}
	if err := ask(t, two, session); err != nil || len(b.at) != 0 {
		t.Errorf("%v, %d calls went to the other endpoint", err, len(b.at))
	}
}
