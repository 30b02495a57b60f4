package providers

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/tracesmith/tracesmith/configs/nearest"
	"github.com/tracesmith/tracesmith/llms"
)

// checkListed refuses a model that the server neither lists nor knows when it is
// asked for by name. Variants (name:variant) of a listed one pass, and so does
// what the server does not make clear: the first call will.
func (c *OpenAI) checkListed(ctx context.Context, list openai.ModelsList) error {
	var names []string
	base, _, _ := strings.Cut(c.model, ":")
	for _, m := range list.Models {
		if m.ID == c.model || m.ID == base {
			return nil
		}
		names = append(names, m.ID)
	}
	if c.unlisted || len(names) == 0 {
		return nil
	}
	ex := &exchange{http: c.http, headers: c.headers, tokens: c.tokens}
	if _, err := c.sdk(ex).GetModel(ctx, c.model); err == nil || ex.status != http.StatusNotFound {
		return nil
	}
	hint := fmt.Sprintf("it has %d others", len(names))
	if near := nearest.Name(c.model, names, max(len(c.model)/4, 1)); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if len(names) <= 10 {
		hint = "it has " + strings.Join(names, ", ")
	}
	return c.redact(&llms.Error{Class: llms.ClassNotFound, Status: http.StatusNotFound, Message: fmt.Sprintf(
		"the server knows no model %s: %s (with: {unlisted: true} asks it all the same)", c.model, hint)})
}
