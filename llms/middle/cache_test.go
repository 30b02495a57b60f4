package middle_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/middle"
	"github.com/tracesmith/tracesmith/schemas"
)

func entries(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		files = append(files, path)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return files
}

// otherProvider is the same model at another provider.
type otherProvider struct{ *steps }

func (otherProvider) Provider() string { return "other" }

// Equal requests are sent once. A request that differs in any relevant part is sent.
func TestCacheSendsEqualRequestsOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	s := &steps{usage: &schemas.Usage{Prompt: 7, Completion: 2}}
	var notes []string
	open := func(s *steps) llms.Client {
		return wrap(t, s, middle.Config{Cache: dir, Warn: func(n string) { notes = append(notes, n) }, Prices: middle.Prices{{Model: "m", Input: 1}}})
	}
	c, p := open(s), &recordingAccount{}
	ask := func(c llms.Client, p *recordingAccount, r llms.Request) schemas.Reply {
		t.Helper()
		resp, err := c.Chat(llms.WithAccount(t.Context(), p), r)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Reply
	}
	hot := 0.7
	question := llms.Request{Messages: []llms.Message{{Role: "user", Content: "why?"}}, SessionID: "a"}
	others := []llms.Request{
		{Messages: []llms.Message{{Role: "user", Content: "why!"}}},
		{Messages: question.Messages, Sampling: llms.Sampling{Temperature: &hot}},
		{Messages: question.Messages, Sampling: llms.Sampling{Extra: map[string]any{"seed": 1}}},
		{Messages: question.Messages, Tools: []schemas.ToolSchema{{Name: "bash"}}},
	}
	first := ask(c, p, question)
	again := question
	again.SessionID = "b"
	second := ask(c, p, again)
	if len(s.at) != 1 || p.fromCache != 1 || len(p.paid) != 1 || !second.FromCache || second.LLMCalls != 0 || *second.CostUSD != 0 || second.Usage.Prompt != 7 || first.FromCache {
		t.Errorf("%d calls, %+v, then %+v", len(s.at), first, second)
	}
	for i, r := range others {
		if ask(c, p, r); len(s.at) != 2+i {
			t.Errorf("request %d was not sent", i)
		}
	}
	if ask(c, &recordingAccount{attempt: 1}, question); len(s.at) != 6 {
		t.Error("another attempt at the task got the reply of the first")
	}
	elsewhere := wrap(t, otherProvider{s}, middle.Config{Cache: dir})
	if ask(elsewhere, &recordingAccount{}, question); len(s.at) != 7 {
		t.Error("a model of another provider got this model's reply")
	}
	if len(entries(t, dir)) != 7 || len(notes) != 0 {
		t.Errorf("%d entries, %q", len(entries(t, dir)), notes)
	}
	// A later client replaces an entry that is broken or incomplete, or that belongs to another request.
	for _, damage := range []string{"", "{", `{"version":1,"key":"other","reply":{}}`, `{"version":99}`} {
		for _, file := range entries(t, dir) {
			if err := os.WriteFile(file, []byte(damage), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		notes = nil
		s := &steps{usage: s.usage}
		c := open(s)
		if ask(c, p, question); len(s.at) != 1 || len(notes) != 1 || !strings.Contains(notes[0], "cannot be used") {
			t.Errorf("%q: %d calls, %q", damage, len(s.at), notes)
		}
		if ask(c, p, question); len(s.at) != 1 {
			t.Errorf("the entry %q was not replaced", damage)
		}
	}
}

// Failures are not cached, and workers with the same request wait for the first of them.
func TestConcurrentEqualRequestsAreSentOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &steps{errs: []error{&llms.Error{Class: llms.ClassQuota}}}
		slow := &slowClient{s}
		c := wrap(t, slow, middle.Config{Cache: dir, Warn: func(n string) { t.Error(n) }})
		if _, err := c.Chat(t.Context(), llms.Request{}); err == nil || len(entries(t, dir)) != 0 {
			t.Fatalf("a failure was cached: %v", err)
		}
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				if _, err := c.Chat(t.Context(), llms.Request{SessionID: fmt.Sprint(i)}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(s.at) != 2 {
			t.Errorf("%d calls for equal requests", len(s.at)-1)
		}
	})
}

// slowClient answers so slowly that other calls arrive before it is done.
type slowClient struct {
	*steps
}

func (s *slowClient) Chat(ctx context.Context, r llms.Request) (llms.Response, error) {
	time.Sleep(time.Second) // until all other calls wait
	return s.steps.Chat(ctx, r)
}
