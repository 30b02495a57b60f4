package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tracesmith/tracesmith/llms/llmtest"
	"github.com/tracesmith/tracesmith/schemas"
)

// Runs against a model server that misbehaves, compared with what the server
// has counted: real processes, real sandboxes, HTTP.

// trouble is a bit of everything that can happen to a call.
const trouble = `faults:
  - {kind: rate_limit_ms, p: 0.1, seed: 1}
  - {kind: server_error, p: 0.1, seed: 2}
  - {kind: overloaded, p: 0.05, seed: 3}
  - {kind: truncated_json, p: 0.05, seed: 4}
  - {kind: reset, p: 0.05, seed: 5}
  - {kind: cut, p: 0.05, seed: 6}
  - {kind: stall_body, p: 0.02, seed: 7}
`

// mender repairs stockroom in four turns.
const mender = `sessions:
  - model: m
    turns:
      - {content: What is here, usage: {prompt: 3000, completion: 400}, tool_calls: [{name: listdir, arguments: {}}]}
      - {usage: {prompt: 3200, completion: 400, cached: 1000}, tool_calls: [{name: view, arguments: {path: stockroom/store.py}}]}
      - usage: {prompt: 3400, completion: 400, cached: 1000}
        tool_calls:
          - name: edit
            arguments:
              path: stockroom/store.py
              old_code: return dict(self._levels)
              new_code: "return {article: dict(shelves) for article, shelves in self._levels.items()}"
      - {content: Done, usage: {prompt: 3600, completion: 400, cached: 1000}, tool_calls: [{name: submit, arguments: {}}]}
`

// Prices of mender's model, USD for a million tokens.
const inputPrice, cachedPrice, outputPrice = 1.0, 0.25, 30.0

const mending = `version: 1
run: {name: account, workers: 16, attempts: ATTEMPTS}
tasks: {source: builtin, ids: [stockroom]}
agent: {kind: react}
llm: {model: m, base_url: "SERVER", timeout: 8s, max_retries: 8, max_tokens: 500}
prices: [{model: m, input: 1, cached: 0.25, output: 30}]
`

// billed is the server's side of an account.
type billed struct {
	Requests, Answered int
	Whole, Lost        schemas.Usage // of answers sent whole, and of those that broke off
}

func (b billed) usd() float64 {
	cost := func(u schemas.Usage) float64 {
		return (float64(u.Prompt-u.Cached)*inputPrice + float64(u.Cached)*cachedPrice + float64(u.Completion)*outputPrice) / 1e6
	}
	return cost(b.Whole) + cost(b.Lost)
}

// ledgerOf adds up everything that servers may send a bill for.
func ledgerOf(t *testing.T, srvs ...*llmtest.Server) (b billed) {
	t.Helper()
	for _, srv := range srvs {
		for _, ex := range srv.Log() {
			b.Requests++
			u := &b.Whole
			switch {
			case ex.Answered:
				b.Answered++
			case ex.Lost:
				u = &b.Lost
			default:
				continue
			}
			var answer struct {
				Usage struct {
					Prompt     int64 `json:"prompt_tokens"`
					Completion int64 `json:"completion_tokens"`
					Details    struct {
						Cached int64 `json:"cached_tokens"`
					} `json:"prompt_tokens_details"`
				} `json:"usage"`
			}
			if err := json.Unmarshal(ex.Answer, &answer); err != nil {
				t.Fatal(err)
			}
			u.Prompt += answer.Usage.Prompt
			u.Completion += answer.Usage.Completion
			u.Cached += answer.Usage.Details.Cached
		}
	}
	return b
}

// summary is what run --json prints, as far as it counts.
type summary struct {
	Verdict  string
	ExitCode int `json:"exit_code"`
	Calls    schemas.Calls
	Ledger   struct{ Selected, Reused, Ran, Missing int }
	Effort   struct {
		SpentNow float64 `json:"spent_now_usd"`
	}
	Episodes []struct {
		Calls      schemas.Calls
		Prompt     int64    `json:"prompt_tokens"`
		Completion int64    `json:"completion_tokens"`
		CostUSD    *float64 `json:"cost_usd"`
		Outcome    string
		Cause      string
	}
}

// batch is one run directory against one server.
type batch struct {
	t      *testing.T
	srv    *llmtest.Server
	config string
	dir    string
}

func newBatch(t *testing.T, script, config string) *batch {
	t.Helper()
	s, err := llmtest.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	srv, err := llmtest.Listen(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	dir, file := writeConfig(t, strings.ReplaceAll(config, "SERVER", srv.URL))
	return &batch{t, srv, file, filepath.Join(dir, "run")}
}

func (b *batch) args(more ...string) []string {
	return append([]string{"run", "-c", b.config, "--run-dir", b.dir, "--json"}, more...)
}

// run runs the batch once more and returns its exit code and summary.
func (b *batch) run(more ...string) (int, summary) {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "tracesmith", b.args(more...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		b.t.Fatal(err)
	}
	var s summary
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		b.t.Fatalf("exit %d: %v\n%s%s", cmd.ProcessState.ExitCode(), err, &out, &errs)
	}
	return cmd.ProcessState.ExitCode(), s
}

// kill starts the batch and kills it outright when the server has been asked so
// many times.
func (b *batch) kill(requests int, more ...string) {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "tracesmith", b.args(more...)...)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	wait(b.t, fmt.Sprintf("%d requests", requests), func() bool { return len(b.srv.Log()) >= requests })
	if err := cmd.Process.Kill(); err != nil {
		b.t.Fatal(err)
	}
	_ = cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() {
		b.t.Fatalf("it ended by itself: %d", cmd.ProcessState.ExitCode())
	}
}

// check compares both sides. Without lost calls they are equal to the token;
// with some the run never knows less than what it can be billed.
func (b *batch) check(s summary) billed {
	b.t.Helper()
	l, c := ledgerOf(b.t, b.srv), s.Calls
	if c.Made != c.Answered+c.Failed+c.LostInFlight {
		b.t.Errorf("the calls do not add up: %+v", c)
	}
	if l.usd() > c.Spent()+1e-9 {
		b.t.Errorf("the server bills $%.4f, the run knows of $%.4f: %+v, %+v", l.usd(), c.Spent(), l, c)
	}
	if c.LostInFlight == 0 {
		if c.Made != l.Requests || c.Answered != l.Answered || c.Prompt != l.Whole.Prompt || c.Completion != l.Whole.Completion || c.Cached != l.Whole.Cached {
			b.t.Errorf("the server counts %+v, the run %+v", l, c)
		}
	} else if c.Made < l.Requests || c.Made > l.Requests+c.LostInFlight || c.Answered > l.Answered || c.Answered < l.Answered-c.LostInFlight {
		b.t.Errorf("with lost calls the server counts %+v, the run %+v", l, c)
	}
	var rows, prompt int64
	cost := 0.0
	for _, e := range s.Episodes {
		if e.CostUSD != nil {
			cost += *e.CostUSD
		}
		prompt, rows = prompt+e.Prompt, rows+1
	}
	if s.ExitCode == 0 && (prompt != c.Prompt || math.Abs(cost-c.CostUSD) > 1e-9) {
		b.t.Errorf("%d episodes show %d tokens for $%.4f, the calls %d for $%.4f", rows, prompt, cost, c.Prompt, c.CostUSD)
	}
	return l
}

// askedAgain counts the questions a server was asked after it had answered them,
// each once: one that is asked again may meet a fault and be tried again.
func (b *batch) askedAgain() int {
	again := map[string]bool{}
	for _, p := range b.srv.TakeProblems() {
		if strings.Contains(p, "was asked for again after its answer") {
			again[p] = true
		} else {
			b.t.Error(p)
		}
	}
	return len(again)
}

func TestBudgetOfOneDollarIsNeverPassed(t *testing.T) {
	t.Parallel()
	b := newBatch(t, trouble+mender, strings.ReplaceAll(mending, "ATTEMPTS", "20"))
	code, s := b.run("--max-cost", "1.00")
	l := b.check(s)
	if code != 5 || s.Verdict != "STOPPED: budget" || l.usd() > 1 || l.usd() < 0.5 || s.Calls.Failed == 0 || s.Calls.LostInFlight != 0 {
		t.Errorf("exit %d, %s, $%.4f at the server, %+v", code, s.Verdict, l.usd(), s.Calls)
	}
	before := l
	if code, s = b.run("--max-cost", "1.00"); code != 5 || b.check(s).usd() > 1 {
		t.Errorf("again: exit %d, %+v", code, s.Calls)
	}
	code, s = b.run("--max-cost", "50")
	l = b.check(s)
	if code != 0 || s.Calls.Answered != 4*20 || l.Requests <= before.Requests || s.Effort.SpentNow >= s.Calls.Spent() {
		t.Errorf("with more money: exit %d, %+v", code, s)
	}
	if n := b.askedAgain(); n != 0 {
		t.Errorf("%d recorded replies were asked for again", n)
	}
}

func TestBudgetHoldsOverKilledProcesses(t *testing.T) {
	t.Parallel()
	b := newBatch(t, trouble+mender, strings.ReplaceAll(mending, "ATTEMPTS", "20"))
	b.kill(5, "--max-cost", "1.00")
	b.kill(16, "--max-cost", "1.00")
	code, s := b.run("--max-cost", "1.00")
	if l := b.check(s); code != 5 || l.usd() > 1 || s.Calls.Spent() > 1 || s.Calls.LostInFlight > 32 {
		t.Errorf("exit %d, $%.4f at the server, %+v", code, l.usd(), s.Calls)
	}
	code, s = b.run("--max-cost", "50")
	b.check(s)
	if code != 0 || s.Ledger.Missing != 0 {
		t.Errorf("with more money: exit %d, %+v", code, s)
	}
	if n := b.askedAgain(); n > s.Calls.LostInFlight {
		t.Errorf("%d replies were asked for again, %d were lost", n, s.Calls.LostInFlight)
	}
}
