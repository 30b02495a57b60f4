package main

import (
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/internal/suite"
)

// twoModelScript answers a seeker, which needs two attempts to hand over, and a solver with
// another model.
const twoModelScript = `sessions:
  - model: m-seek
    turns:
      - {content: What is here, usage: {prompt: 3000, completion: 400}, tool_calls: [{name: view, arguments: {path: stockroom/store.py}}]}
      - usage: {prompt: 3200, completion: 400, cached: 1000}
        tool_calls: [{name: pdb, arguments: {command: "b stockroom/history.py:32 ;; c"}}, {name: grep, arguments: {pattern: levels}}]
      - usage: {prompt: 3400, completion: 400}
        tool_calls: [{name: handover, arguments: {cause: levels() is shallow, cause_steps: [2], files: [{path: stockroom/store.py, start: 41, end: 44, step: 2}]}}]
      - usage: {prompt: 3600, completion: 400}
        tool_calls: [{name: handover, arguments: {cause: levels() is shallow, cause_steps: [2], files: [{path: stockroom/store.py, start: 41, end: 43, step: 2}]}}]
  - model: m-solve
    turns:
      - usage: {prompt: 1000, completion: 300}
        tool_calls: [{name: edit, arguments: {path: stockroom/store.py, start: 43, new_code: "        return {article: dict(shelves) for article, shelves in self._levels.items()}"}}]
      - {content: Done, usage: {prompt: 1200, completion: 100, cached: 1000}, tool_calls: [{name: submit, arguments: {}}]}
`

// twoModelConfig is the configuration of a run of twoModelScript.
const twoModelConfig = `version: 1
run: {name: halves, workers: 4, attempts: ATTEMPTS}
` + quickTask + `agent: {kind: seeker, with: {solver_model: second}}
llm: {model: first}
models:
  first: {model: m-seek, base_url: "SERVER", timeout: 5s, max_retries: 8, max_tokens: 500, price: {input: 1, cached: 0.25, output: 30}}
  second: {model: m-solve, base_url: "SERVER", timeout: 5s, max_retries: 8, max_tokens: 500, price: {input: 1, cached: 0.25, output: 30}}
`

// With a misbehaving server, and kills in both halves of the episodes, each call is accounted
// for, no recorded reply is requested again, and every episode is complete.
func TestAgentsAccountForSeekersCalls(t *testing.T) {
	suite.Agents.Require(t)
	t.Parallel()
	b := newBatch(t, twoModelScript+faultScript+stallAt(24), strings.Replace(twoModelConfig, "ATTEMPTS", "4", 1))
	b.kill(4)  // all episodes are in the first half
	b.kill(24) // some episodes are in the second half
	code, s := b.run()
	if code != 0 || s.Ledger.Missing != 0 {
		t.Fatalf("exit %d, %+v", code, s)
	}
	for _, e := range s.Episodes {
		if e.Outcome != "resolved" {
			t.Errorf("%s: %s", e.Outcome, e.Cause)
		}
	}
	b.check(s)
	if repeated := b.repeatedRequests(); repeated > s.Calls.LostInFlight {
		t.Errorf("%d requests were repeated, %d calls were lost in flight", repeated, s.Calls.LostInFlight)
	}
}

// One budget applies to both models: no call starts that could exceed it, and a run with a
// higher budget continues where this one stopped.
func TestAgentsKeepSeekersBudget(t *testing.T) {
	suite.Agents.Require(t)
	t.Parallel()
	b := newBatch(t, twoModelScript, strings.Replace(twoModelConfig, "ATTEMPTS", "6", 1))
	code, s := b.run("--max-cost", "0.15")
	if l := b.check(s); code != 5 || billed(l) > 0.15 || billed(l) < 0.08 {
		t.Fatalf("exit %d with $%.4f spent of $0.15", code, billed(l))
	}
	if code, s = b.run("--max-cost", "9"); code != 0 || s.Ledger.Missing != 0 {
		t.Fatalf("exit %d, %+v", code, s)
	}
	b.check(s)
	if repeated := b.repeatedRequests(); repeated > s.Calls.LostInFlight {
		t.Errorf("%d requests were repeated, %d calls were lost in flight", repeated, s.Calls.LostInFlight)
	}
}
