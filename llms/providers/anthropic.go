package providers

// Anthropic's Messages API. The official SDK builds the request. Content blocks of earlier
// answers are sent back byte for byte (anthropic_wire.go), because thinking is signed. The
// reply is decoded from the received bytes.

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	llms.Providers.Register(plugin.Spec[llms.Client, llms.Deps]{
		Kind:    "anthropic",
		Summary: "Anthropic's Messages API, with signed thinking and prompt caching",
		Default: func() any {
			return &AnthropicConfig{Endpoint: Endpoint{BaseURL: "https://api.anthropic.com", Timeout: "600s"}, Cache: "5m"}
		},
		New: func(cfg any, deps llms.Deps) (llms.Client, error) {
			return NewAnthropic(*cfg.(*AnthropicConfig), deps)
		},
	})
}

// AnthropicConfig configures one endpoint and model. The version in base_url is optional.
type AnthropicConfig struct {
	Endpoint
	Cache string `json:"cache"` // how long the server keeps prompt prefixes: 5m, 1h or off
}

// Anthropic is a client of one endpoint and model.
type Anthropic struct {
	*endpoint
	cache string
}

// NewAnthropic checks the settings and resolves the key; it opens no connection.
func NewAnthropic(cfg AnthropicConfig, deps llms.Deps) (*Anthropic, error) {
	if cfg.Cache != "5m" && cfg.Cache != "1h" && cfg.Cache != "off" {
		return nil, fmt.Errorf("cache is %q: choose 5m, 1h or off", cfg.Cache)
	}
	e, err := newEndpoint(cfg.Endpoint, deps)
	if err != nil {
		return nil, err
	}
	e.base = strings.TrimSuffix(e.base, "/v1") // the SDK adds it
	return &Anthropic{endpoint: e, cache: cfg.Cache}, nil
}

// Provider returns "anthropic".
func (c *Anthropic) Provider() string { return "anthropic" }

// Chat sends one request and does not retry. It returns an *llms.Error, or the error of ctx if
// ctx has ended.
func (c *Anthropic) Chat(ctx context.Context, r llms.Request) (llms.Response, error) {
	if err := checkExtra(r.Sampling.Extra, "system", "max_tokens"); err != nil {
		return llms.Response{}, err
	}
	ex := &exchange{http: c.http, headers: c.headers, session: r.SessionID, patch: func(body map[string]any) error {
		return c.patchBody(body, r)
	}}
	params, err := c.request(r)
	if err != nil {
		return llms.Response{}, err
	}
	service := anthropic.NewMessageService(c.options(ex)...)
	return c.chat(ctx, r, ex, func(ctx context.Context) error {
		_, err := service.New(ctx, params)
		return err
	}, func(raw []byte, history []llms.Message) (schemas.Reply, *llms.Error) {
		return decodeAnthropic(raw, history, c.CacheRates(r).Hour)
	})
}

// CacheRates returns Anthropic's rates, as multiples of the price of input: 0.1 for a read,
// 1.25 for a write for five minutes, and 2 for a write for an hour.
func (c *Anthropic) CacheRates(r llms.Request) llms.CacheRates {
	return llms.CacheRates{Read: 0.1, Write: 1.25, WriteHour: 2, Hour: c.cache == "1h" || asksForHour(r)}
}

// Check requests the description of the model, which costs nothing.
func (c *Anthropic) Check(ctx context.Context) error {
	callCtx, cancel := c.checkContext(ctx)
	defer cancel()
	ex := &exchange{http: c.http, headers: c.headers}
	service := anthropic.NewModelService(c.options(ex)...)
	_, err := service.Get(callCtx, c.model, anthropic.ModelGetParams{})
	if ex.status == 0 {
		return c.transportError(ctx, callCtx, ex, err)
	}
	if ex.status == http.StatusOK && !isHTML(ex.received) {
		return nil
	}
	e := statusError(ex.status, ex.header, ex.received)
	if e.Class == llms.ClassAuth || e.Class == llms.ClassQuota || e.Class == llms.ClassNotFound && strings.Contains(e.Message, c.model) {
		return c.redact(e)
	}
	if apiErr := c.findAPI(callCtx, anthropicAPI); apiErr != nil {
		return apiErr
	}
	if e.Class == llms.ClassNotFound && !c.hasEndpoint(callCtx, http.MethodPost, c.base+anthropicAPI.chat) {
		return c.redact(e)
	}
	return nil // the server does not describe models
}

// options prevents the SDK from reading its settings from environment variables, and from
// retrying.
func (c *Anthropic) options(ex *exchange) []option.RequestOption {
	return []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithBaseURL(c.base), option.WithAPIKey(c.key),
		option.WithHTTPClient(ex), option.WithMaxRetries(0), option.WithRequestTimeout(c.timeout),
	}
}

// request fills in what the SDK's structs can express; patchBody adds the rest.
func (c *Anthropic) request(r llms.Request) (anthropic.MessageNewParams, error) {
	p := anthropic.MessageNewParams{Model: anthropic.Model(c.model), MaxTokens: llms.DefaultMaxTokens}
	if r.Sampling.MaxTokens != nil {
		p.MaxTokens = int64(*r.Sampling.MaxTokens)
	}
	for _, m := range r.Messages {
		role, blocks := anthropicBlocks(m)
		switch n := len(p.Messages); {
		case m.Role == "system" && n == 0:
			p.System = append(p.System, anthropic.TextBlockParam{Text: m.Content})
		case len(blocks) == 0: // the API refuses empty texts
		case n > 0 && p.Messages[n-1].Role == role:
			p.Messages[n-1].Content = append(p.Messages[n-1].Content, blocks...)
		default:
			p.Messages = append(p.Messages, anthropic.MessageParam{Role: role, Content: blocks})
		}
	}
	for _, t := range r.Tools {
		var schema anthropic.ToolInputSchemaParam
		if err := json.Unmarshal(t.Parameters, &schema); err != nil {
			return p, &llms.Error{Class: llms.ClassBadRequest, Message: fmt.Sprintf("the parameters of tool %s are not a JSON schema: %v", t.Name, err), Err: err}
		}
		tool := anthropic.ToolUnionParamOfTool(schema, t.Name)
		tool.OfTool.Description = anthropic.String(t.Description)
		p.Tools = append(p.Tools, tool)
	}
	if len(r.Tools) > 0 {
		p.ToolChoice = anthropicChoice(r.Sampling.ToolChoice)
	}
	c.markCache(&p)
	return p, nil
}

func anthropicChoice(choice string) anthropic.ToolChoiceUnionParam {
	switch choice {
	case "":
		return anthropic.ToolChoiceUnionParam{}
	case "auto":
		return anthropic.ToolChoiceUnionParam{OfAuto: &anthropic.ToolChoiceAutoParam{}}
	case "none":
		return anthropic.ToolChoiceUnionParam{OfNone: &anthropic.ToolChoiceNoneParam{}}
	case "required":
		return anthropic.ToolChoiceUnionParam{OfAny: &anthropic.ToolChoiceAnyParam{}}
	}
	return anthropic.ToolChoiceParamOfTool(choice)
}
