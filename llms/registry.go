package llms

import (
	"context"
	"errors"
	"net/http"

	"github.com/tracesmith/tracesmith/configs/plugin"
)

// Deps holds the dependencies of a provider.
type Deps struct {
	// Getenv resolves settings of the form "env:NAME".
	Getenv func(string) string
	// Transport makes the calls; nil means http.DefaultTransport.
	Transport http.RoundTripper
}

// Providers is the registry of model providers. Package providers fills it.
var Providers = &plugin.Registry[Client, Deps]{What: "provider"}

// Checker is a Client that can check at no cost whether its server is reachable and
// accepts the key. Errors are *Error.
type Checker interface {
	Check(ctx context.Context) error
}

// Lister is a Client that can list the models of its server. Errors are *Error.
type Lister interface {
	Models(ctx context.Context) ([]ModelInfo, error)
}

// ErrBudget means that a call was not made because its worst-case cost exceeds the rest of
// the budget of the episode or its task. It ends the episode as max_cost.
var ErrBudget = errors.New("cost budget is used up")
