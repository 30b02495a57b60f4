package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms/mock"
)

// A run stops when the account at the model server has no quota left, and the same command continues it.
func TestRunsStopAndResumeWhenTheQuotaEnds(t *testing.T) {
	t.Parallel()
	b := newBatch(t, "faults: [{kind: quota, on: [27]}, {kind: quota, on: [41]}]\n"+fixerScript, strings.ReplaceAll(fixerConfig, "ATTEMPTS", "12"))
	stops := 0
	code, s := b.run()
	for ; code == 5 && stops < 12; code, s = b.run() {
		b.check(s)
		stops++
		if s.Verdict != "STOPPED: budget" || s.Calls.Failed == 0 { // the same verdict as for the run's own budget
			t.Errorf("%+v", s)
		}
	}
	if l := b.check(s); code != 0 || stops == 0 || s.Calls.Answered != 12*4 || l.Requests != 12*4+s.Calls.Failed {
		t.Errorf("exit %d after %d stops, %+v", code, stops, s)
	}
	if n := b.repeatedRequests(); n != 0 {
		t.Errorf("%d recorded replies were requested again", n)
	}
}

// If one of two endpoints dies, its conversations move to the other one, no answered request is
// repeated, and the counts of both endpoints add up to those of the run.
func TestRunOutlivesAnEndpoint(t *testing.T) {
	t.Parallel()
	script, err := mock.Parse([]byte(fixerScript))
	if err != nil {
		t.Fatal(err)
	}
	mortal := mocktest.Listen(script)
	t.Cleanup(mortal.Close)
	config := strings.ReplaceAll(fixerConfig, `base_url: "SERVER"`, fmt.Sprintf(`endpoints: [{base_url: %q}, {base_url: "SERVER"}]`, mortal.URL))
	b := newBatch(t, fixerScript, strings.NewReplacer("ATTEMPTS", "16", "workers: 16", "workers: 4").Replace(config))
	cmd, out := start(t, b.args()...)
	wait(t, "the mortal endpoint has answered", func() bool { return len(mortal.Log()) >= 9 })
	mortal.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	code, s := b.run() // the batch is complete, so this reports the same counts
	second := b.srv.totals()
	both := mortal.Totals() // the server is closed, so this reads its counts directly
	both.Requests, both.Answered = both.Requests+second.Requests, both.Answered+second.Answered
	for sum, more := range map[*mock.Usage]mock.Usage{&both.Usage: second.Usage, &both.Lost: second.Lost} {
		sum.Prompt, sum.Completion, sum.Cached = sum.Prompt+more.Prompt, sum.Completion+more.Completion, sum.Cached+more.Cached
	}
	if code != 0 || s.Ledger.Reused != 16 || s.Calls.Answered != 16*4 || second.Requests == 0 {
		t.Errorf("exit %d, %+v", code, s)
	}
	// A refused connection never reached a server. If the endpoint died while it sent an answer, it
	// counts the request as answered, and the run counts the call as failed and possibly billed.
	c := s.Calls
	lost := both.Answered - c.Answered
	if lost < 0 || both.Requests-c.Answered > c.Failed || billed(both) > c.Spent()+1e-9 ||
		lost == 0 && (c.Prompt != both.Prompt || c.Completion != both.Completion) || c.Prompt > both.Prompt {
		t.Errorf("the servers count %+v, the run %+v", both, c)
	}
	if staged := len(stagedIn(t, filepath.Join(b.dir))); s.Calls.Failed == 0 || staged != 16 {
		t.Errorf("%d episodes are staged, want 16, and some calls to the dead endpoint failed: %+v", staged, s.Calls)
	}
}

// With a cache, a second run with the same requests sends none of them. Each of its attempts gets the
// answers of the same attempt of the first run, even if these differ between attempts.
func TestCachedRepliesAreNotAskedForAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := strings.NewReplacer("ATTEMPTS", "2", "workers: 16", "workers: 2", "llm: {", fmt.Sprintf("llm: {cache: %q, ", dir)).Replace(fixerConfig)
	b := newBatch(t, fixerScript, config)
	code, s := b.run()
	l := b.check(s)
	if code != 0 || l.Requests != 8 || s.Calls.FromCache != 0 {
		t.Fatalf("exit %d, %+v", code, s.Calls)
	}
	b.dir += "-again"
	code, s = b.run()
	l = b.srv.totals()
	if c := s.Calls; code != 0 || l.Requests != 8 || c.Made != 0 || c.FromCache != 8 || c.Spent() != 0 {
		t.Errorf("exit %d, %d requests, %+v", code, l.Requests, c)
	}
	for _, e := range s.Episodes {
		if e.Outcome != "resolved" || e.CostUSD == nil || *e.CostUSD != 0 || e.Prompt == 0 {
			t.Errorf("%+v", e)
		}
	}
}
