package mutate

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
)

//go:embed write.tmpl
var writeText string

var writePrompt = template.Must(template.New("write").Parse(writeText))

// Target is a function into which a model writes a bug.
type Target struct {
	File string `json:"file"`
	Func string `json:"func"` // as in Site.Func
	// Rewrite shows the model the file without the function's body and asks for a new one. Else the
	// model also gets the body and is asked for a version with a bug.
	Rewrite bool `json:"rewrite,omitempty"`
}

// Question is the prompt for a model about a function.
func (m *Mutator) Question(ctx context.Context, t Target) (string, error) {
	var shown display
	if err := m.ask(ctx, request{Op: "show", File: t.File, Func: t.Func}, &shown); err != nil {
		return "", fmt.Errorf("showing %s of %s: %w", t.Func, t.File, err)
	}
	var prompt bytes.Buffer
	if err := writePrompt.Execute(&prompt, map[string]any{"File": t.File, "Func": t.Func, "Around": strings.TrimRight(shown.Around, "\n"),
		"Text": strings.TrimRight(shown.Text, "\n"), "Rewrite": t.Rewrite}); err != nil {
		return "", fmt.Errorf("writing the prompt: %w", err)
	}
	return prompt.String(), nil
}

// Written makes a mutation of a model's answer. The answer must be one function of the same name, kind
// and parameters; a *RefusedError says what is wrong with it. Only the tests can decide whether it is
// a bug.
func (m *Mutator) Written(ctx context.Context, t Target, answer string) (Mutation, error) {
	text, err := codeBlock(answer)
	if err != nil {
		return Mutation{}, err
	}
	return m.change(ctx, request{Op: "exchange", File: t.File, Func: t.Func, Text: text})
}

// maxCode bounds a function that a model wrote, in bytes.
const maxCode = 256 << 10

// codeBlock is the last fenced block of an answer, or all of an answer that begins
// like a function.
func codeBlock(answer string) (string, error) {
	answer = strings.ReplaceAll(strings.ToValidUTF8(answer, "?"), "\r\n", "\n")
	var block, last []string
	fence := ""
	for _, line := range strings.Split(answer, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence == "" && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")):
			fence, block = trimmed[:3], []string{}
		case fence != "" && trimmed == fence:
			fence, last = "", block
		case fence != "":
			block = append(block, line)
		}
	}
	text := strings.Join(last, "\n")
	if last == nil {
		start := strings.TrimSpace(answer)
		for _, word := range []string{"def ", "async def ", "@"} {
			if strings.HasPrefix(start, word) {
				text = answer
			}
		}
	}
	if strings.TrimSpace(text) == "" || len(text) > maxCode {
		return "", &RefusedError{Why: "the model's answer has no block of code that can be used"}
	}
	return text, nil
}
