package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/schemas"
)

// CanaryTokens is the maximum length of the answer to a canary call.
const CanaryTokens = 64

// Endpoint is one server of a model.
type Endpoint struct {
	Section string        // where the configuration holds the model, such as "llm"
	URL     string        // base URL; "" = the provider's own
	Checker llms.Checker  // asks, at no cost, whether the server works; nil: the provider has no such request
	Client  llms.Client   // for the canary call; nil: there is none
	Sample  llms.Sampling // parameters of the canary call
}

// Model checks the endpoints of one model. An unreachable endpoint is only a warning if another one
// works, because that one takes its calls.
func Model(endpoints []Endpoint) Check {
	return func(ctx context.Context) []Result {
		results := make([]Result, len(endpoints))
		for i, e := range endpoints {
			results[i] = e.check(ctx)
		}
		if slices.ContainsFunc(results, func(r Result) bool { return r.Status != Failed }) {
			for i, r := range results {
				if llms.ClassOf(r.Err) == llms.ClassUnreachable {
					results[i].Status, results[i].Err = Warning, nil
				}
			}
		}
		return results
	}
}

func (e Endpoint) check(ctx context.Context) Result {
	if e.Checker != nil {
		if err := e.Checker.Check(ctx); err != nil {
			return e.fail(err)
		}
	}
	if e.Client == nil {
		return ok("model", "%s answers", e.name())
	}
	return e.canary(ctx)
}

// name returns the section and the address.
func (e Endpoint) name() string {
	if e.URL == "" {
		return e.Section
	}
	return e.Section + " at " + e.URL
}

func (e Endpoint) fail(err error) Result {
	r := Fail("model", pipeline.PreflightError(&agents.FatalError{Class: llms.ClassOf(err), Err: err}))
	r.Message = e.name() + ": " + r.Message
	return r
}

// canaryTool is the tool that the model is asked to call.
var canaryTool = schemas.ToolSchema{
	Name: "report", Description: "Report the answer to a question.",
	Parameters: json.RawMessage(`{"type":"object","properties":{"answer":{"type":"integer","description":"the answer"}},"required":["answer"]}`),
}

// canary makes one small call, which shows whether the model calls tools.
func (e Endpoint) canary(ctx context.Context) Result {
	start := time.Now()
	resp, err := e.Client.Chat(ctx, llms.Request{
		Messages: []llms.Message{{Role: "user", Content: "What is 6 times 7? Call the tool report with the answer, and write nothing else."}},
		Tools:    []schemas.ToolSchema{canaryTool}, Sampling: canarySampling(e.Sample),
	})
	if err != nil {
		return e.canaryFailure(err)
	}
	reply := resp.Reply
	paid := millis(time.Since(start)) + ", " + cost(reply)
	if len(reply.Calls) > 0 && reply.Calls[0].Name == canaryTool.Name {
		switch call := reply.Calls[0]; {
		case call.Truncated: // reported below
		case call.Invalid != "":
			return warn("model", "choose a model that writes arguments as JSON, or check how the server parses its calls (vLLM: --tool-call-parser); runs execute no such call",
				"%s: %s calls tools with unusable arguments (%s): %q; %s", e.name(), e.Client.Model(), call.Invalid, shorten(call.Raw), paid)
		case reply.Usage == nil:
			return warn("model", "let the server report the usage of each answer; else costs are unknown, and cost limits count the worst case of each call",
				"%s: %s calls tools, but the server reports no usage; %s", e.name(), e.Client.Model(), paid)
		default:
			return ok("model", "%s: %s calls tools; %s", e.name(), e.Client.Model(), paid)
		}
	}
	if reply.Truncated {
		return warn("model", "nothing, if the model reasons before it calls a tool; else try another prompt format of the server",
			"%s: %s used all %d tokens before it called the tool; %s", e.name(), e.Client.Model(), CanaryTokens, paid)
	}
	remedy := "choose a model that calls tools, or let the server parse its calls (vLLM: --enable-auto-tool-choice and --tool-call-parser)"
	if reply.CallAsText {
		remedy = "let the server parse the calls of the model (vLLM: --enable-auto-tool-choice and --tool-call-parser), or set agent.kind to simple, which describes its own form of calls in the text; other agents never execute such calls"
	}
	return warn("model", remedy, "%s: %s answered without a call of the tool; %s", e.name(), e.Client.Model(), paid)
}

// canaryFailure returns the result for a canary call that failed. If the server is only busy, the
// configuration is right.
func (e Endpoint) canaryFailure(err error) Result {
	switch llms.ClassOf(err) {
	case llms.ClassRateLimit, llms.ClassConcurrency, llms.ClassOverload:
		return warn("model", "wait, or lower run.workers or set llm.rpm and llm.tpm to the limits of the account; runs wait and try again",
			"%s: %s is rate limited: %v", e.name(), e.Client.Model(), err)
	}
	return e.fail(err)
}

// limitNames are the fields, besides max_tokens, in which servers accept a limit on the length of an
// answer.
var limitNames = []string{"max_completion_tokens", "max_output_tokens", "max_tokens"}

// canarySampling returns the configured parameters with a small limit on the length of the answer,
// in the field in which the configuration has it. A tool_choice that names another tool is left out.
func canarySampling(s llms.Sampling) llms.Sampling {
	limit := CanaryTokens
	s.Extra = maps.Clone(s.Extra)
	delete(s.Extra, "thinking") // Anthropic's budget for it must be smaller than the limit
	inExtra := false
	for _, name := range limitNames {
		if _, set := s.Extra[name]; set {
			s.Extra[name], inExtra = limit, true
		}
	}
	if s.MaxTokens = &limit; inExtra {
		s.MaxTokens = nil
	}
	if !slices.Contains([]string{"", "auto", "required"}, s.ToolChoice) {
		s.ToolChoice = ""
	}
	return s
}

// shorten returns the beginning of a text.
func shorten(text string) string {
	if r := []rune(text); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return text
}

// cost says what a call used and what it cost.
func cost(r schemas.Reply) string {
	used := r.Usage
	if used == nil {
		used = r.Estimated
	}
	var parts []string
	if used != nil {
		parts = append(parts, fmt.Sprintf("%d + %d tokens", used.Prompt, used.Completion))
	}
	switch {
	case r.CostUSD != nil:
		parts = append(parts, fmt.Sprintf("$%.6f", *r.CostUSD))
	case r.Usage == nil:
		parts = append(parts, "cost unknown (estimated tokens)")
	default:
		parts = append(parts, "cost unknown (no price)")
	}
	return strings.Join(parts, ", ")
}
