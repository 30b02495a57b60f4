package llms

import (
	"context"
	"errors"
	"net/http"

	"github.com/tracesmith/tracesmith/configs/plugin"
)

// Deps is what a provider is built from.
type Deps struct {
	// Getenv resolves "env:NAME" settings; keys never stand in configuration.
	Getenv func(string) string
	// Transport carries the calls; nil means http.DefaultTransport.
	Transport http.RoundTripper
}

// Providers lists the model providers that exist. llms/providers fills it.
var Providers = &plugin.Registry[Client, Deps]{What: "provider"}

// Checker is a Client that can find out, at no cost, that its server is
// unreachable or refuses the key. Errors are *Error.
type Checker interface {
	Check(ctx context.Context) error
}

// Lister is a Client that can list the models of its server. Errors are *Error.
type Lister interface {
	Models(ctx context.Context) ([]ModelInfo, error)
}

// ErrBudget: a call was not made because its worst-case cost no longer fits
// the budget of the episode or its task. It ends the episode as max_cost.
var ErrBudget = errors.New("cost budget is used up")
