package providers

// The OpenAI-compatible provider. go-openai builds the request, and patchBody
// (openai_wire.go) adds what its structs cannot express. The exchange keeps the bytes of
// the request and the response. The reply is decoded from those bytes (openai_decode.go),
// because servers send more than the SDK's structs hold.

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	openai "github.com/sashabaranov/go-openai"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	llms.Providers.Register(plugin.Spec[llms.Client, llms.Deps]{
		Kind:    "openai",
		Summary: "any server that speaks the OpenAI chat completions API",
		Default: func() any { return &OpenAIConfig{Endpoint: Endpoint{Timeout: "300s"}, Dialect: DefaultDialect()} },
		New: func(cfg any, deps llms.Deps) (llms.Client, error) {
			return NewOpenAI(*cfg.(*OpenAIConfig), deps)
		},
	})
}

// OpenAIConfig configures one endpoint and model. The base_url includes the API version,
// as in http://127.0.0.1:8000/v1.
type OpenAIConfig struct {
	Endpoint
	Dialect
	Unlisted bool `json:"unlisted"` // the server accepts models that it does not list
}

// OpenAI is a client of one OpenAI-compatible endpoint and model.
type OpenAI struct {
	*endpoint
	sdkConfig openai.ClientConfig
	dialect   Dialect
	unlisted  bool
}

// NewOpenAI checks the settings and resolves the key; it opens no connection.
func NewOpenAI(cfg OpenAIConfig, deps llms.Deps) (*OpenAI, error) {
	if err := cfg.Dialect.check(); err != nil {
		return nil, err
	}
	e, err := newEndpoint(cfg.Endpoint, deps)
	if err != nil {
		return nil, err
	}
	c := &OpenAI{endpoint: e, dialect: cfg.Dialect, unlisted: cfg.Unlisted, sdkConfig: openai.DefaultConfig(e.key)}
	c.sdkConfig.BaseURL = e.base
	return c, nil
}

// Provider returns "openai", which names the wire format, not the vendor.
func (c *OpenAI) Provider() string { return "openai" }

// Chat sends one request and does not retry. It returns an *llms.Error, or the error of ctx if
// ctx has ended.
func (c *OpenAI) Chat(ctx context.Context, r llms.Request) (llms.Response, error) {
	if err := checkExtra(r.Sampling.Extra); err != nil {
		return llms.Response{}, err
	}
	ex := &exchange{http: c.http, headers: c.headers, tokens: c.tokens, session: r.SessionID, patch: func(body map[string]any) error {
		return c.patchBody(body, r)
	}}
	return c.chat(ctx, r, ex, func(ctx context.Context) error {
		_, err := c.sdk(ex).CreateChatCompletion(ctx, c.request(r))
		return err
	}, func(raw []byte, history []llms.Message) (schemas.Reply, *llms.Error) {
		return decodeReply(raw, history, asksForHour(r))
	})
}

// CacheRates returns the highest rates that vendors with this API charge for a write. The
// price of a read differs so much between them that it assumes the full price of input.
func (c *OpenAI) CacheRates(r llms.Request) llms.CacheRates {
	return llms.CacheRates{Read: 1, Write: 1.25, WriteHour: 2, Hour: asksForHour(r)}
}

// Check requests the list of models, which costs nothing, so that an unreachable host, a
// refused key, a wrong base_url or an unknown model is detected before a run starts. If the
// server does not have that endpoint, Check succeeds.
func (c *OpenAI) Check(ctx context.Context) error {
	callCtx, cancel := c.checkContext(ctx)
	defer cancel()
	ex := &exchange{http: c.http, headers: c.headers, tokens: c.tokens}
	list, err := c.sdk(ex).ListModels(callCtx)
	if ex.status == 0 {
		return c.transportError(ctx, callCtx, ex, err)
	}
	if ex.status != http.StatusOK {
		if e := statusError(ex.status, ex.header, ex.received); e.Class == llms.ClassAuth || e.Class == llms.ClassQuota {
			return c.redact(e)
		}
	}
	if apiErr := c.checkBaseURL(callCtx, ex); apiErr != nil {
		return apiErr
	}
	if ex.status == http.StatusOK {
		return c.checkListed(callCtx, list)
	}
	return nil
}

// checkBaseURL returns an error if the API is not at base_url but at a similar URL. ex is the
// exchange in which the client requested the list of models.
func (c *OpenAI) checkBaseURL(ctx context.Context, ex *exchange) *llms.Error {
	if c.sdkConfig.APIType != openai.APITypeOpenAI || ex.status == http.StatusOK && listsModels(ex.received) {
		return nil // Azure uses other paths
	}
	return c.findAPI(ctx, openaiAPI)
}

// Models lists the models that the server offers. Its errors are like those of Chat.
func (c *OpenAI) Models(ctx context.Context) ([]llms.ModelInfo, error) {
	callCtx, cancel := c.checkContext(ctx)
	defer cancel()
	ex := &exchange{http: c.http, headers: c.headers, tokens: c.tokens}
	_, err := c.sdk(ex).ListModels(callCtx)
	if ex.status == 0 || ex.readErr != nil {
		return nil, c.transportError(ctx, callCtx, ex, err)
	}
	if apiErr := c.checkBaseURL(callCtx, ex); apiErr != nil {
		return nil, apiErr
	}
	if ex.status != http.StatusOK {
		return nil, c.redact(statusError(ex.status, ex.header, ex.received))
	}
	models, failure := decodeModels(ex.received)
	if failure != nil {
		return nil, c.redact(failure)
	}
	return models, nil
}

func (c *OpenAI) sdk(ex *exchange) *openai.Client {
	cfg := c.sdkConfig
	cfg.HTTPClient = ex
	return openai.NewClientWithConfig(cfg)
}

// request fills in what the SDK's structs can express; patchBody adds the rest.
func (c *OpenAI) request(r llms.Request) openai.ChatCompletionRequest {
	out := openai.ChatCompletionRequest{Model: c.model}
	for _, m := range r.Messages {
		msg := openai.ChatCompletionMessage{Role: m.Role, Content: m.Content, ToolCallID: c.dialect.callID(m.ToolCallID)}
		for _, call := range m.ToolCalls {
			msg.ToolCalls = append(msg.ToolCalls, openai.ToolCall{
				ID: c.dialect.callID(call.ID), Type: openai.ToolTypeFunction,
				Function: openai.FunctionCall{Name: call.Name, Arguments: echoArguments(call)},
			})
		}
		out.Messages = append(out.Messages, msg)
	}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: t.Parameters,
		}})
	}
	s := r.Sampling
	if s.MaxTokens != nil {
		if c.dialect.MaxTokensField == "max_tokens" {
			//lint:ignore SA1019 most compatible servers accept only this field
			out.MaxTokens = *s.MaxTokens
		} else {
			out.MaxCompletionTokens = *s.MaxTokens
		}
	}
	if s.Seed != nil {
		seed := int(*s.Seed)
		out.Seed = &seed
	}
	switch {
	case s.ToolChoice == "" || len(r.Tools) == 0:
	case slices.Contains([]string{"auto", "none", "required"}, s.ToolChoice):
		out.ToolChoice = s.ToolChoice
	default:
		out.ToolChoice = openai.ToolChoice{Type: openai.ToolTypeFunction, Function: openai.ToolFunction{Name: s.ToolChoice}}
	}
	return out
}

// echoArguments returns the arguments of an earlier call for the history: the model's own
// text if it is a JSON object, else the canonical form. It never returns text that cannot
// be parsed, because several servers parse the history and reject the whole request.
func echoArguments(call schemas.ToolCall) string {
	if call.Raw != "" && isObject(call.Raw) {
		return call.Raw
	}
	if len(call.Arguments) == 0 {
		return "{}"
	}
	return string(call.Arguments)
}

// checkExtra rejects extra sampling fields that would replace the conversation or a
// separate setting. more lists further names to reject.
func checkExtra(extra map[string]any, more ...string) error {
	for _, name := range append(more, "messages", "model", "stream", "tools", "n") {
		if _, ok := extra[name]; ok {
			return &llms.Error{Class: llms.ClassBadRequest, Message: fmt.Sprintf("sampling.extra must not set %q", name)}
		}
	}
	return nil
}
