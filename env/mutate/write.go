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
	// Rewrite asks the model to write the function again without seeing its body. Otherwise the
	// model sees the body and is asked for a version with a bug.
	Rewrite bool `json:"rewrite,omitempty"`
}

// BugPrompt returns the prompt that asks a model to write a bug into a function.
func (m *Mutator) BugPrompt(ctx context.Context, t Target) (string, error) {
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

// FromAnswer returns the mutation that a model's answer describes. The answer must contain one function
// with the same name, kind and parameters; otherwise the error is a *RefusedError. Whether the change is
// a bug can only be decided by running the tests.
func (m *Mutator) FromAnswer(ctx context.Context, t Target, answer string) (Mutation, error) {
	text, err := codeBlock(answer)
	if err != nil {
		return Mutation{}, err
	}
	return m.change(ctx, request{Op: "exchange", File: t.File, Func: t.Func, Text: text})
}

// maxCode is the maximum size in bytes of a function that a model wrote.
const maxCode = 256 << 10

// codeBlock returns the last fenced block of an answer. If there is none and the answer begins like a
// function, it returns the whole answer.
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
