package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/schemas"
)

// These tests compare the calls, tokens and costs that runs in real processes and sandboxes
// report with those that a misbehaving model server counts.

// serverFaults are the faults of the first calls of a run, in this order. The stalls come
// first, so that several calls stall at the same time.
var serverFaults = []string{"stall_start", "stall_headers", "stall_body", "rate_limit_ms", "server_error", "overloaded",
	"truncated_json", "cut", "reset", "reset_body"}

// faultScript is the section faults of a script: each of serverFaults once.
var faultScript = func() string {
	text := "faults:\n"
	for i, kind := range serverFaults {
		text += fmt.Sprintf("  - {kind: %s, on: [%d]}\n", kind, i+1)
	}
	return text
}()

// stallAt returns one more fault for faultScript: a stall at a request, so that the process is
// still alive at that request.
func stallAt(request int) string {
	return fmt.Sprintf("  - {kind: stall_start, on: [%d]}\n", request)
}

// fixerScript fixes stockroom in four turns.
const fixerScript = `sessions:
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

// Prices of the scripted model in USD per million tokens.
const inputPrice, cachedPrice, outputPrice = 1.0, 0.25, 30.0

// quickTask is stockroom with an entrypoint that takes almost no time, because these tests
// check calls.
const quickTask = `tasks:
  source: path
  with: {path: "STOCKROOM", instance_id: stockroom, entrypoint: grep -q dict.shelves stockroom/store.py, debug_entrypoint: python3 -m pytest -q}
`

// fixerConfig is the configuration of a run of fixerScript.
const fixerConfig = `version: 1
run: {name: account, workers: 16, attempts: ATTEMPTS}
` + quickTask + `agent: {kind: react}
llm: {model: m, base_url: "SERVER", timeout: 5s, max_retries: 8, max_tokens: 500}
prices: [{model: m, input: 1, cached: 0.25, output: 30}]
`

// billed returns what the server may bill: complete answers and broken ones.
func billed(t mock.Totals) float64 {
	cost := func(u mock.Usage) float64 {
		return (float64(u.Prompt-u.Cached)*inputPrice + float64(u.Cached)*cachedPrice + float64(u.Completion)*outputPrice) / 1e6
	}
	return cost(t.Usage) + cost(t.Lost)
}

// mockProcess is tracesmith mock in another process, which reports its counts over HTTP.
type mockProcess struct {
	t   *testing.T
	url string // with /v1
}

// startMock starts tracesmith mock with a script.
func startMock(t *testing.T, script string) *mockProcess {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("tracesmith", "mock", file)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		t.Fatalf("tracesmith mock: %v\n%s", err, &errs)
	}
	return &mockProcess{t, strings.TrimSpace(line)}
}

// get reads a report of the mock.
func (m *mockProcess) get(path string, into any) {
	m.t.Helper()
	resp, err := http.Get(m.url + path)
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
		m.t.Fatalf("%s: %s, %v", path, resp.Status, err)
	}
}

func (m *mockProcess) totals() (t mock.Totals) {
	m.t.Helper()
	m.get("/__totals", &t)
	return t
}

// summary is the part of run --json that the tests need.
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
	srv    *mockProcess
	config string
	dir    string
}

func newBatch(t *testing.T, script, config string) *batch {
	t.Helper()
	srv := startMock(t, script)
	stockroom, err := filepath.Abs("../../env/tasks/sources/builtin/tasks/stockroom/repo")
	if err != nil {
		t.Fatal(err)
	}
	dir, file := writeConfig(t, strings.NewReplacer("SERVER", srv.url, "STOCKROOM", stockroom).Replace(config))
	return &batch{t, srv, file, filepath.Join(dir, "run")}
}

func (b *batch) args(more ...string) []string {
	return append([]string{"run", "-c", b.config, "--run-dir", b.dir, "--json"}, more...)
}

// run runs the batch again and returns its exit code and summary.
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

// kill starts the batch and kills it after a number of requests.
func (b *batch) kill(requests int, more ...string) {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "tracesmith", b.args(more...)...)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	wait(b.t, fmt.Sprintf("%d requests", requests), func() bool { return b.srv.totals().Requests >= requests })
	if err := cmd.Process.Kill(); err != nil {
		b.t.Fatal(err)
	}
	_ = cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() {
		b.t.Fatalf("the process exited before it was killed: exit code %d", cmd.ProcessState.ExitCode())
	}
}

// check compares the counts of the run with those of the server. Without lost calls they are
// equal. With lost calls, the run never reports less than the server may bill.
func (b *batch) check(s summary) mock.Totals {
	b.t.Helper()
	l, c := b.srv.totals(), s.Calls
	if c.Made != c.Answered+c.Failed+c.LostInFlight {
		b.t.Errorf("the calls do not add up: %+v", c)
	}
	if billed(l) > c.Spent()+1e-9 {
		b.t.Errorf("the server bills $%.4f, the run reports only $%.4f: %+v, %+v", billed(l), c.Spent(), l, c)
	}
	if c.LostInFlight == 0 {
		if c.Made != l.Requests || c.Answered != l.Answered || c.Prompt != l.Prompt || c.Completion != l.Completion || c.Cached != l.Cached {
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

// repeatedRequests counts the requests that the server got again after it had answered them. It
// counts a request once, however often it was repeated, because a repeated request may meet a
// fault and be retried.
func (b *batch) repeatedRequests() int {
	repeated := map[string]bool{}
	var seen struct{ Problems []string }
	b.srv.get("/__problems", &seen)
	for _, p := range seen.Problems {
		if strings.Contains(p, "was asked for again after its answer") {
			repeated[p] = true
		} else {
			b.t.Error(p)
		}
	}
	return len(repeated)
}

func TestBudgetOfOneDollarIsNeverPassed(t *testing.T) {
	t.Parallel()
	b := newBatch(t, faultScript+fixerScript, strings.ReplaceAll(fixerConfig, "ATTEMPTS", "20"))
	code, s := b.run("--max-cost", "1.00")
	l := b.check(s)
	if code != 5 || s.Verdict != "STOPPED: budget" || billed(l) > 1 || billed(l) < 0.5 || s.Calls.Failed == 0 || s.Calls.LostInFlight != 0 {
		t.Errorf("exit %d, %s, $%.4f at the server, %+v", code, s.Verdict, billed(l), s.Calls)
	}
	before := l
	if code, s = b.run("--max-cost", "1.00"); code != 5 || billed(b.check(s)) > 1 {
		t.Errorf("again: exit %d, %+v", code, s.Calls)
	}
	code, s = b.run("--max-cost", "50")
	l = b.check(s)
	if code != 0 || s.Calls.Answered != 4*20 || l.Requests <= before.Requests || s.Effort.SpentNow >= s.Calls.Spent() {
		t.Errorf("with more money: exit %d, %+v", code, s)
	}
	if n := b.repeatedRequests(); n != 0 {
		t.Errorf("%d recorded replies were requested again", n)
	}
}

func TestBudgetHoldsOverKilledProcesses(t *testing.T) {
	t.Parallel()
	b := newBatch(t, faultScript+stallAt(16)+fixerScript, strings.ReplaceAll(fixerConfig, "ATTEMPTS", "20"))
	b.kill(5, "--max-cost", "1.00")
	b.kill(16, "--max-cost", "1.00")
	code, s := b.run("--max-cost", "1.00")
	if l := b.check(s); code != 5 || billed(l) > 1 || s.Calls.Spent() > 1 || s.Calls.LostInFlight > 32 {
		t.Errorf("exit %d, $%.4f at the server, %+v", code, billed(l), s.Calls)
	}
	code, s = b.run("--max-cost", "50")
	b.check(s)
	if code != 0 || s.Ledger.Missing != 0 {
		t.Errorf("with more money: exit %d, %+v", code, s)
	}
	if n := b.repeatedRequests(); n > s.Calls.LostInFlight {
		t.Errorf("%d replies were requested again, %d were lost", n, s.Calls.LostInFlight)
	}
}

// If a process is killed while its calls stall, each call counts as lost in flight, at no less
// than the server may bill.
func TestStalledCallsOfAKilledProcessAreLostInFlight(t *testing.T) {
	t.Parallel()
	config := strings.NewReplacer("ATTEMPTS", "3", "workers: 16", "workers: 3", "timeout: 5s", "timeout: 5m").Replace(fixerConfig)
	b := newBatch(t, "faults: [{kind: stall_start, on: [1]}, {kind: stall_headers, on: [2]}, {kind: stall_body, on: [3]}]\n"+fixerScript, config)
	b.kill(3)
	code, s := b.run()
	l := b.check(s)
	if c := s.Calls; code != 0 || c.LostInFlight != 3 || c.Failed != 0 || c.Answered != 3*4 || l.Lost.Prompt != 3*3000 || c.AtRiskUSD < billed(mock.Totals{Tally: mock.Tally{Lost: l.Lost}}) {
		t.Errorf("exit %d, the run counts %+v, the server %+v", code, c, l)
	}
}

// With Anthropic's prompt cache and no configured cache prices, the run and the server compute
// the same costs, and the cost limit holds.
func TestAnthropicsCacheIsBilledAsTheServerBillsIt(t *testing.T) {
	t.Parallel()
	script := "tokenizer: toy\nprices: [{model: m, input: 3, output: 15}]\nfaults: [{kind: rate_limit_ms, on: [2]}, {kind: cut, on: [4]}, {kind: overloaded, on: [7]}]\n" +
		regexp.MustCompile(`usage: \{[^}]*\}(, )?`).ReplaceAllString(fixerScript, "")
	for _, ttl := range []string{"5m", "1h", "off"} {
		config := strings.NewReplacer("ATTEMPTS", "3", "workers: 16", "workers: 3", "llm: {", "llm: {provider: anthropic, with: {cache: "+ttl+"}, ",
			"input: 1, cached: 0.25, output: 30", "input: 3, output: 15").Replace(fixerConfig)
		b := newBatch(t, script, config)
		code, s := b.run("--max-cost", "0.04")
		l := b.srv.totals()
		if code != 5 || l.Billed.USD()+l.LostBilled.USD() > 0.04 || math.Abs(l.Billed.USD()-s.Calls.CostUSD) > 1e-9 {
			t.Errorf("cache %s, with a limit: exit %d, the server bills $%.6f and $%.6f of lost answers, the run counts $%.6f", ttl, code, l.Billed.USD(), l.LostBilled.USD(), s.Calls.CostUSD)
		}
		code, s = b.run("--max-cost", "50")
		l = b.srv.totals()
		if code != 0 || math.Abs(l.Billed.USD()-s.Calls.CostUSD) > 1e-9 || l.LostBilled.USD() > s.Calls.AtRiskUSD || s.Calls.Answered != 12 {
			t.Errorf("cache %s: exit %d, the server bills $%.6f, the run counts $%.6f: %+v", ttl, code, l.Billed.USD(), s.Calls.CostUSD, s.Calls)
		}
		if written := ttl != "off"; written != (l.CacheWrite > 0) || written != (l.Cached > 0) || (ttl == "1h") != (l.CacheWrite1h > 0) {
			t.Errorf("cache %s: the server counts %+v", ttl, l.Usage)
		}
	}
}
