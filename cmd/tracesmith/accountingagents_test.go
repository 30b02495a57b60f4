package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/internal/suite"
)

// textFixerScript makes the same calls as fixerScript, written as text.
const textFixerScript = `sessions:
  - model: m
    turns:
      - {content: "What is here\n<function=listdir>\n</function>", usage: {prompt: 3000, completion: 400}}
      - {content: "<function=view>\n<parameter=path>stockroom/store.py</parameter>\n</function>", usage: {prompt: 3200, completion: 400}}
      - usage: {prompt: 3400, completion: 400}
        content: |-
          <function=edit>
          <parameter=path>stockroom/store.py</parameter>
          <parameter=old_code>return dict(self._levels)</parameter>
          <parameter=new_code>return {article: dict(shelves) for article, shelves in self._levels.items()}</parameter>
          </function>
      - {content: "<function=submit>\n</function>", usage: {prompt: 3600, completion: 400}}
`

// seekerScript answers the two parts of the agent seeker, first the one that seeks and then the one that solves.
const seekerScript = `sessions:
  - tag: Do not fix anything
    turns:
      - {usage: {prompt: 3000, completion: 300}, tool_calls: [{name: view, arguments: {path: stockroom/store.py}}]}
      - {usage: {prompt: 3500, completion: 300}, tool_calls: [{name: handover, arguments: {cause: levels() is shallow, cause_steps: [2], files: [{path: stockroom/store.py, start: 41, end: 43, step: 2}]}}]}
  - tag: Another engineer has run the program
    turns:
      - usage: {prompt: 2000, completion: 300}
        tool_calls: [{name: edit, arguments: {path: stockroom/store.py, start: 43, new_code: '        return {article: dict(shelves) for article, shelves in self._levels.items()}'}}]
      - {usage: {prompt: 2200, completion: 300}, tool_calls: [{name: submit, arguments: {}}]}
`

// Every agent that calls a model finishes its episodes although the server throttles, fails,
// breaks connections and stalls. The run and the server count the same calls.
func TestAgentsAccountForEveryCall(t *testing.T) {
	suite.Agents.Require(t)
	t.Parallel()
	scripts := map[string]string{"replay": fixerScript, "react": fixerScript, "rewrite": fixerScript, "debug5": fixerScript, "simple": textFixerScript, "seeker": seekerScript}
	for _, kind := range agents.Registry.Kinds() {
		script, known := scripts[kind]
		if needs, err := agents.NeedsOf(kind, nil); err == nil && !needs.Model && kind != "replay" {
			continue
		}
		if !known {
			t.Errorf("agent %s calls a model, but this test has no script for it", kind)
			continue
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			config := strings.NewReplacer("ATTEMPTS", "4", "workers: 16", "workers: 4", "kind: react", "kind: "+kind).Replace(fixerConfig)
			calls := 4 * 4
			if kind == "replay" { // replays the first of the four turns that another run has recorded
				recorded := newBatch(t, fixerScript, strings.ReplaceAll(fixerConfig, "ATTEMPTS", "4"))
				if code, s := recorded.run(); code != 0 {
					t.Fatalf("exit %d, %+v", code, s)
				}
				config = strings.Replace(config, "kind: replay", fmt.Sprintf("kind: replay, with: {from: %q, turns: 1, then: model}", recorded.dir), 1)
				calls = 4 * 3
			}
			b := newBatch(t, faultScript+script, config)
			code, s := b.run()
			struck := b.check(s).Faults
			for _, kind := range serverFaults {
				if n := struck[kind]; n != 1 {
					t.Errorf("%s struck %d times", kind, n)
				}
			}
			if c := s.Calls; code != 0 || c.Answered != calls || c.Failed < len(serverFaults) || c.Retried != c.Failed || c.AtRiskUSD == 0 {
				t.Errorf("exit %d, %+v", code, s)
			}
			for _, e := range s.Episodes {
				if e.Outcome != "resolved" {
					t.Errorf("%s: %s", e.Outcome, e.Cause)
				}
			}
			if n := b.repeatedRequests(); n != 0 {
				t.Errorf("%d recorded replies were requested again", n)
			}
		})
	}
}
