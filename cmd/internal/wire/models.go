package wire

import (
	"context"
	"fmt"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/llms"
)

// ServedModels lists the models that the first endpoint of a model serves. Errors
// name section, the place of the model in the configuration.
func ServedModels(ctx context.Context, section string, l configs.LLM, getenv func(string) string) ([]llms.ModelInfo, error) {
	client, err := provided(section, l, l.All()[0], getenv)
	if err != nil {
		return nil, err
	}
	lister, ok := client.(llms.Lister)
	if !ok {
		return nil, fmt.Errorf("provider %s does not list models", l.Provider)
	}
	return lister.Models(ctx)
}
