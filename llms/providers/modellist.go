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

// checkListed returns an error if the server neither lists the model nor finds it by name.
// It accepts variants (name:variant) of listed models. If the server's answers are unclear,
// it returns nil.
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
		"the server does not have the model %s: %s (with: {unlisted: true} uses it anyway)", c.model, hint)})
}
