package wire

import (
	"context"
	"fmt"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/llms"
)

// ServedModels lists the models that the server at the first endpoint of l serves. section
// is where the configuration holds l; errors name it.
func ServedModels(ctx context.Context, section string, l configs.LLM, getenv func(string) string) ([]llms.ModelInfo, error) {
	client, err := providerClient(section, l, l.AllEndpoints()[0], getenv)
	if err != nil {
		return nil, err
	}
	lister, ok := client.(llms.Lister)
	if !ok {
		return nil, fmt.Errorf("provider %s does not list models", l.Provider)
	}
	return lister.Models(ctx)
}
