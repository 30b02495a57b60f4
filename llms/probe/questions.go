package probe

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// answerTokens bounds each answer; models that think need some.
const answerTokens = 512

var note = schemas.ToolSchema{Name: "note", Description: "Write a word down.", Parameters: json.RawMessage(
	`{"type":"object","properties":{"word":{"type":"string","description":"The word."}},"required":["word"],"additionalProperties":false}`)}

func user(text string) llms.Request {
	limit := answerTokens
	return llms.Request{Messages: []llms.Message{{Role: "user", Content: text}}, Sampling: llms.Sampling{MaxTokens: &limit}}
}

func tooled(text, choice string) llms.Request {
	r := user(text)
	r.Tools, r.Sampling.ToolChoice = []schemas.ToolSchema{note}, choice
	return r
}

func accepted(llms.Response) (verdict, detail string) { return Yes, "" }

// plain is the first call: nothing else works where it does not. It finds the
// spelling of the limit, the place of the usage, the name of the reasoning.
func (p *prober) plain(ctx context.Context) error {
	r := user("Answer with the one word: ready")
	resp, took, err := p.call(ctx, r, nil)
	if llms.ClassOf(err) == llms.ClassRefused && strings.Contains(said(err), "max_tokens") && p.Provider != "anthropic" {
		p.found("max_tokens", Refused, said(err), took)
		p.Settings["max_tokens_field"] = "max_completion_tokens"
		if resp, took, err = p.call(ctx, r, nil); err == nil {
			p.found("max_completion_tokens", Yes, "", took)
		}
	} else if err == nil {
		p.found("max_tokens", Yes, "", took)
	}
	if err != nil {
		return err
	}
	p.found("chat", Yes, fmt.Sprintf("%s: %q", resp.Reply.FinishReason, clip(resp.Reply.Message)), took)
	p.seen(resp)
	return nil
}

// seen reads what the bytes of an answer show beside its text.
func (p *prober) seen(resp llms.Response) {
	var body struct {
		Usage   json.RawMessage `json:"usage"`
		Choices []struct {
			Usage   json.RawMessage            `json:"usage"`
			Message map[string]json.RawMessage `json:"message"`
		} `json:"choices"`
		Content []struct {
			Type string `json:"type"`
		} `json:"content"`
	}
	if json.Unmarshal(resp.Raw, &body) != nil {
		return
	}
	switch {
	case resp.Reply.Usage == nil:
		p.found("usage", No, "the server does not count tokens: costs cannot be known", 0)
	case len(body.Usage) > 0:
		p.found("usage", Yes, "at the top of the answer", 0)
	case len(body.Choices) > 0 && len(body.Choices[0].Usage) > 0:
		p.found("usage", Yes, "in the choice", 0)
	default:
		p.found("usage", Yes, "in a block of the router", 0)
	}
	if len(body.Choices) > 0 {
		for _, name := range []string{"reasoning_content", "reasoning", "reasoning_details"} {
			if raw := body.Choices[0].Message[name]; len(raw) > 0 && string(raw) != "null" {
				p.reasoningField = cmp.Or(p.reasoningField, name)
			}
		}
	}
	for _, block := range body.Content {
		if block.Type == "thinking" {
			p.reasoningField = cmp.Or(p.reasoningField, "thinking")
		}
	}
	if p.reasoningField == "" {
		p.found("reasoning", No, "no reasoning in the answer", 0)
	} else {
		p.found("reasoning", Yes, p.reasoningField, 0)
	}
}

// sampling asks for parameters that some models refuse; those go into drop.
func (p *prober) sampling(ctx context.Context) error {
	zero, seed := 0.0, int64(7)
	var drop []string
	for _, param := range []struct {
		name string
		set  func(*llms.Sampling)
	}{
		{"temperature", func(s *llms.Sampling) { s.Temperature = &zero }},
		{"seed", func(s *llms.Sampling) { s.Seed = &seed }},
	} {
		if param.name == "seed" && p.Provider == "anthropic" {
			continue // its API has none
		}
		r := user("Answer with the one word: ready")
		param.set(&r.Sampling)
		if err := p.question(ctx, param.name, r, nil, accepted); err != nil {
			return err
		}
		if p.Find(param.name).Verdict == Refused {
			drop = append(drop, param.name)
		}
	}
	if len(drop) > 0 && p.Provider != "anthropic" {
		p.Settings["drop"] = drop
	}
	return nil
}

// tools asks for calls in each way of asking, and for two at once.
func (p *prober) tools(ctx context.Context) error {
	called := func(resp llms.Response) (string, string) {
		switch calls := resp.Reply.Calls; {
		case len(calls) == 0 && resp.Reply.CallAsText:
			return No, "the call came as text: the server needs a tool parser for this model"
		case len(calls) == 0:
			return No, "no call: " + resp.Reply.FinishReason
		case calls[0].Invalid != "":
			return No, calls[0].Invalid
		default:
			return Yes, resp.Reply.FinishReason
		}
	}
	for _, choice := range []string{"auto", "required", note.Name} {
		name := "tools_" + choice
		if choice == note.Name {
			name = "tools_named"
		}
		if err := p.question(ctx, name, tooled("Call the tool note with the word: ready", choice), nil, called); err != nil {
			return err
		}
	}
	return p.question(ctx, "parallel_calls", tooled("Call the tool note twice in one reply, with the words: one, two", "auto"), nil,
		func(resp llms.Response) (string, string) {
			if n := len(resp.Reply.Calls); n < 2 {
				return No, fmt.Sprintf("%d calls", n)
			}
			return Yes, ""
		})
}

// answered is a conversation with one call and its result, and with reasoning
// under the model's own name for it.
func answered(reasoningField string) llms.Request {
	r := tooled("Call the tool note with the word: ready. Then say done.", "auto")
	call := schemas.ToolCall{ID: "call_0123456789_probe", Name: note.Name, Arguments: json.RawMessage(`{"word":"ready"}`)}
	asked := llms.Message{Role: "assistant", ToolCalls: []schemas.ToolCall{call}}
	if reasoningField == "reasoning_content" || reasoningField == "reasoning" {
		asked.Raw = json.RawMessage(`{"role":"assistant","content":null,"` + reasoningField + `":"The word is ready."}`)
	}
	r.Messages = append(r.Messages, asked,
		llms.Message{Role: "tool", ToolCallID: call.ID, Content: "written down"})
	return r
}

// roundTrip sends a call back with its result. Where that is refused, it looks
// for the one setting that makes it pass.
func (p *prober) roundTrip(ctx context.Context) error {
	r := answered(p.reasoningField)
	if p.Provider == "anthropic" {
		return p.question(ctx, "round_trip", r, nil, accepted)
	}
	if err := p.question(ctx, "round_trip", r, nil, accepted); err != nil {
		return err
	}
	ways := []struct {
		name string
		with map[string]any
	}{
		{"content_empty", map[string]any{"empty_content": "empty"}}, {"content_space", map[string]any{"empty_content": "space"}},
		{"reasoning_left_out", map[string]any{"echo_reasoning": "never"}}, {"ids_of_nine", map[string]any{"call_ids": "nine"}},
	}
	works := p.Find("round_trip").Verdict == Yes
	for _, way := range ways {
		if works && way.name != "content_empty" && way.name != "reasoning_left_out" {
			continue // of interest only where the usual way fails
		}
		if way.name == "reasoning_left_out" && r.Messages[1].Raw == nil {
			continue // there is none
		}
		if err := p.question(ctx, way.name, r, way.with, accepted); err != nil {
			return err
		}
		if !works && p.Find(way.name).Verdict == Yes {
			for k, v := range way.with {
				p.Settings[k] = v
			}
			works = true
		}
	}
	return nil
}

// extras are of interest for costs and training, and nothing fails without them.
func (p *prober) extras(ctx context.Context) error {
	r := user("Answer with the one word: ready")
	if err := p.question(ctx, "cached_tokens", r, nil, func(resp llms.Response) (string, string) {
		switch u := resp.Reply.Usage; {
		case u != nil && u.Cached > 0:
			return Yes, fmt.Sprintf("%d tokens from the cache", u.Cached)
		case strings.Contains(string(resp.Raw), "cached_tokens") || strings.Contains(string(resp.Raw), "cache_read"):
			return Yes, "reported, none in so short a prompt"
		}
		return No, "not reported"
	}); err != nil {
		return err
	}
	if p.Provider != "anthropic" {
		ids := user("Answer with the one word: ready")
		ids.Sampling.Extra = map[string]any{"return_token_ids": true}
		if err := p.question(ctx, "token_ids", ids, nil, func(resp llms.Response) (string, string) {
			if strings.Contains(string(resp.Raw), `"token_ids"`) {
				return Yes, "with extra.return_token_ids"
			}
			return No, ""
		}); err != nil {
			return err
		}
	}
	huge := 1 << 30 // an answer that no server can give
	r.Sampling.MaxTokens = &huge
	_, took, err := p.call(ctx, r, nil)
	if err == nil {
		p.found("overflow", No, "an impossible limit of the answer is taken", took)
		return nil
	}
	if class := llms.ClassOf(err); class == llms.ClassContext {
		p.found("overflow", Yes, said(err), took)
		if e, ok := err.(*llms.Error); ok && p.ContextLimit == 0 {
			p.ContextLimit = e.ContextLimit
		}
		return nil
	}
	p.found("overflow", Refused, said(err), took)
	return fatal(err)
}

func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "..."
	}
	return s
}
