package providers

// Azure OpenAI: the OpenAI API under the paths of a deployment, with a key in its own header
// or with tokens of Entra ID (entra.go).

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/llms"
)

func init() {
	llms.Providers.Register(plugin.Spec[llms.Client, llms.Deps]{
		Kind:    "azure",
		Summary: "Azure OpenAI, by key or by Entra ID",
		Default: func() any {
			return &AzureConfig{Endpoint: Endpoint{Timeout: "300s"}, Dialect: DefaultDialect(), Entra: Entra{Authority: "https://login.microsoftonline.com"}}
		},
		New: func(cfg any, deps llms.Deps) (llms.Client, error) {
			return NewAzure(*cfg.(*AzureConfig), deps)
		},
	})
}

// AzureConfig configures one deployment. base_url is the URL of the resource, such as
// https://NAME.openai.azure.com.
type AzureConfig struct {
	Endpoint
	Dialect
	Entra
	APIVersion string `json:"api_version"` // version of the API, such as 2024-10-21
	Deployment string `json:"deployment"`  // name of the deployment; unset = the name of the model
}

// Azure is a client of one deployment.
type Azure struct{ OpenAI }

// Provider returns "azure".
func (*Azure) Provider() string { return "azure" }

// NewAzure checks the settings and resolves the secrets; it opens no connection.
func NewAzure(cfg AzureConfig, deps llms.Deps) (*Azure, error) {
	cfg.APIVersion = strings.TrimSuffix(cfg.APIVersion, "T00:00:00Z") // YAML reads an unquoted version as a date
	switch {
	case cfg.APIVersion == "":
		return nil, errors.New("api_version is missing: Azure requires one, such as 2024-10-21")
	case (cfg.APIKey == "") == (cfg.Scope == ""):
		return nil, errors.New("set either api_key, or scope for tokens of Entra ID (https://cognitiveservices.azure.com/.default)")
	}
	if err := cfg.Dialect.check(); err != nil {
		return nil, err
	}
	e, err := newEndpoint(cfg.Endpoint, deps)
	if err != nil {
		return nil, err
	}
	if cfg.Scope != "" {
		if e.tokens, err = newTokens(cfg.Entra, e, deps); err != nil {
			return nil, fmt.Errorf("scope: %w", err)
		}
	}
	deployment := cmp.Or(cfg.Deployment, cfg.Model)
	sdk := openai.DefaultAzureConfig(e.key, e.base)
	sdk.APIVersion = cfg.APIVersion
	sdk.AzureModelMapperFunc = func(string) string { return url.PathEscape(deployment) }
	if e.tokens != nil {
		sdk.APIType = openai.APITypeAzureAD
	}
	return &Azure{OpenAI{endpoint: e, dialect: cfg.Dialect, unlisted: true, sdkConfig: sdk}}, nil
}
