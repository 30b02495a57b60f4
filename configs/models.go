package configs

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
)

// LLM is one model and its servers. Agents use the model of section llm. Section models
// holds further models under names that llm.model and the settings of agents can use.
type LLM struct {
	Provider  string            `mapstructure:"provider" json:"provider"` // API of the server; see llm.with
	Model     string            `mapstructure:"model" json:"model"`       // name of the model, as the server calls it, or a name in section models
	BaseURL   string            `mapstructure:"base_url" json:"base_url"` // address of the server; use endpoints for several
	APIKey    string            `mapstructure:"api_key" json:"api_key"`   // where the key is, as env:NAME or file:PATH; never the key itself
	Endpoints []LLMEndpoint     `mapstructure:"endpoints" json:"endpoints,omitempty"`
	Headers   map[string]string `mapstructure:"headers" json:"headers,omitempty"` // headers of every call; a value may be env:NAME or file:PATH
	With      Block             `mapstructure:"with" json:"with,omitempty"`       // settings of the provider
	Timeout   time.Duration     `mapstructure:"timeout" json:"timeout"`           // time limit of one call

	Cache      string `mapstructure:"cache" json:"cache,omitempty"`   // directory in which to cache answers; unset = no cache
	MaxRetries int    `mapstructure:"max_retries" json:"max_retries"` // maximum number of retries of a failed call
	RPM        int    `mapstructure:"rpm" json:"rpm,omitempty"`       // requests per minute that this process sends to an endpoint; 0 = no limit
	// Tokens per minute that this process sends to and receives from an endpoint; 0 = no limit.
	TPM int `mapstructure:"tpm" json:"tpm,omitempty"`
	// Maximum concurrent calls from this process to an endpoint; 0 = one for each worker, fewer if
	// the server refuses calls.
	Parallel int `mapstructure:"parallel" json:"parallel,omitempty"`

	Temperature *float64 `mapstructure:"temperature" json:"temperature,omitempty"` // sampling temperature; unset: the server decides
	TopP        *float64 `mapstructure:"top_p" json:"top_p,omitempty"`             // nucleus sampling, from 0 to 1; unset: the server decides
	MaxTokens   *int     `mapstructure:"max_tokens" json:"max_tokens,omitempty"`   // maximum tokens of one answer; unset: the server decides
	ToolChoice  string   `mapstructure:"tool_choice" json:"tool_choice,omitempty"` // tools that the model may call: auto, none, required or the name of a tool; unset: the server decides
	Extra       Block    `mapstructure:"extra" json:"extra,omitempty"`             // fields that are merged into the body of every request

	// Maximum tokens of prompt and answer together; 0 = learned when the server refuses a prompt.
	ContextLimit int    `mapstructure:"context_limit" json:"context_limit,omitempty"`
	Tokenizer    string `mapstructure:"tokenizer" json:"tokenizer,omitempty"` // vocabulary to count tokens with; unset = chosen by the name of the model
	// False puts the system prompt at the start of the first user message; unset = true.
	SystemRole *bool `mapstructure:"system_role" json:"system_role,omitempty"`

	Price *Price `mapstructure:"price" json:"price,omitempty"` // unset: the price in section prices

	// ModelsEntry is the name in section models from which section llm was filled, if any.
	ModelsEntry string `mapstructure:"-" json:"-"`
}

// LLMEndpoint is one server of a model. A setting that is omitted takes the value of the model's setting.
type LLMEndpoint struct {
	BaseURL  string  `mapstructure:"base_url" json:"base_url"`           // address of the server
	APIKey   string  `mapstructure:"api_key" json:"api_key,omitempty"`   // where the key is, as env:NAME or file:PATH; unset = the key of the model
	Weight   float64 `mapstructure:"weight" json:"weight,omitempty"`     // weight of this endpoint when conversations are distributed over the endpoints; 0 = 1
	RPM      int     `mapstructure:"rpm" json:"rpm,omitempty"`           // requests per minute; 0 = the limit of the model
	TPM      int     `mapstructure:"tpm" json:"tpm,omitempty"`           // tokens per minute; 0 = the limit of the model
	Parallel int     `mapstructure:"parallel" json:"parallel,omitempty"` // maximum concurrent calls; 0 = the limit of the model
}

// secretSetting matches settings of providers that hold credentials.
var secretSetting = regexp.MustCompile(`(?i)secret|password|api_?key`)

// Models holds the models of section models by their names.
type Models map[string]LLM

func defaultLLM() LLM { return LLM{Provider: "openai", Timeout: 5 * time.Minute, MaxRetries: 6} }

// AllEndpoints returns the endpoints of the model with all settings filled in.
func (l LLM) AllEndpoints() []LLMEndpoint {
	if len(l.Endpoints) == 0 {
		return []LLMEndpoint{{BaseURL: l.BaseURL, APIKey: l.APIKey, RPM: l.RPM, TPM: l.TPM, Parallel: l.Parallel}}
	}
	out := slices.Clone(l.Endpoints)
	for i := range out {
		e := &out[i]
		e.APIKey = cmp.Or(e.APIKey, l.APIKey)
		e.RPM = cmp.Or(e.RPM, l.RPM)
		e.TPM = cmp.Or(e.TPM, l.TPM)
		e.Parallel = cmp.Or(e.Parallel, l.Parallel)
	}
	return out
}

// decodeModels decodes sections llm and models without viper, which would convert the
// names of models and headers to lower case.
func decodeModels(doc map[string]any) (LLM, Models, error) {
	var models Models
	sections, _ := doc["models"].(map[string]any)
	llmSection, _ := doc["llm"].(map[string]any)
	for name, section := range sections {
		m, err := decodeLLM(section)
		if err != nil {
			return LLM{}, nil, fmt.Errorf("models.%s: %w", name, err)
		}
		m.Model = cmp.Or(m.Model, name)
		if models == nil {
			models = Models{}
		}
		models[name] = m
	}
	named := ""
	if name, ok := llmSection["model"].(string); ok && sections[name] != nil {
		named = name
		merged := map[string]any{}
		if base, ok := sections[name].(map[string]any); ok {
			merge(merged, deepCopy(base))
		}
		overrides := deepCopy(llmSection)
		delete(overrides, "model")
		merge(merged, overrides)
		if merged["model"] == nil {
			merged["model"] = name
		}
		llmSection = merged
	}
	llm, err := decodeLLM(llmSection)
	if err != nil {
		return LLM{}, nil, fmt.Errorf("llm: %w", err)
	}
	llm.ModelsEntry = named
	return llm, models, nil
}

// deepCopy copies a block and its nested blocks, because merge modifies them.
func deepCopy(doc map[string]any) map[string]any {
	out := maps.Clone(doc)
	for k, v := range out {
		if sub, ok := v.(map[string]any); ok {
			out[k] = deepCopy(sub)
		}
	}
	return out
}

func decodeLLM(section any) (LLM, error) {
	out := defaultLLM()
	dec, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result: &out, ErrorUnused: true, DecodeHook: mapstructure.StringToTimeDurationHookFunc(),
	})
	if err == nil {
		err = dec.Decode(section)
	}
	return out, err
}

func isHTTPAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

func refersToSecret(s string) bool {
	return strings.HasPrefix(s, "env:") || strings.HasPrefix(s, "file:")
}

// validate reports the problems of one model. section is the path of its section.
func (l LLM) validate(section string, report func(field, format string, a ...any)) {
	if len(l.Endpoints) > 0 && l.BaseURL != "" {
		report(section+".base_url", "cannot be combined with endpoints: write it as one of them")
	}
	for i, e := range l.AllEndpoints() {
		path := section
		if len(l.Endpoints) > 0 {
			path = fmt.Sprintf("%s.endpoints[%d]", section, i)
			if e.BaseURL == "" {
				report(path+".base_url", "is missing")
			}
		}
		if e.BaseURL != "" && !isHTTPAddress(e.BaseURL) {
			report(path+".base_url", "%q is not an http(s) address", e.BaseURL)
		}
		if e.APIKey != "" && !refersToSecret(e.APIKey) {
			report(path+".api_key", "never write a key here: write env:NAME and put the key into that environment variable, or file:PATH and put it into the first line of that file")
		}
		if e.RPM < 0 || e.TPM < 0 || e.Parallel < 0 || e.Weight < 0 {
			report(path+".rpm, tpm, parallel, weight", "must not be negative")
		}
	}
	if l.Price != nil {
		l.Price.validate(section+".price", report)
	}
	for name, value := range l.Headers {
		switch {
		case !headerName.MatchString(name):
			report(section+".headers", "%q is not a valid header name", name)
		case secretHeaders.MatchString(name) && !refersToSecret(value):
			report(section+".headers."+name, "never write a secret here: write env:NAME and put it into that environment variable, or file:PATH and put it into that file")
		}
	}
	for name, value := range l.With {
		if text, ok := value.(string); ok && secretSetting.MatchString(name) && !refersToSecret(text) {
			report(section+".with."+name, "never write a secret here: write env:NAME or file:PATH")
		}
	}
	if l.MaxRetries < 0 || l.MaxRetries > 100 {
		report(section+".max_retries", "must be between 0 and 100")
	}
	if l.MaxTokens != nil && *l.MaxTokens < 1 {
		report(section+".max_tokens", "must be at least 1; leave it out for the server's own limit")
	}
	if l.Temperature != nil && *l.Temperature < 0 {
		report(section+".temperature", "must not be negative")
	}
	if l.TopP != nil && (*l.TopP < 0 || *l.TopP > 1) {
		report(section+".top_p", "must be between 0 and 1")
	}
	if l.ContextLimit < 0 {
		report(section+".context_limit", "must not be negative: it is a number of tokens")
	}
	if l.Timeout <= 0 {
		report(section+".timeout", "must be longer than zero")
	}
}
