package synth

import (
	"context"
	"fmt"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// ask returns the model's answer to a prompt, from the journal if possible. The error is
// llms.ErrBudget if the budget prevented the call, and a modelError, which ends the run,
// if the server failed permanently.
func (w *worker) ask(ctx context.Context, repo, key, prompt string) (modelAnswer, error) {
	messages := []llms.Message{{Role: "user", Content: prompt}}
	answer := modelAnswer{Repo: repo, Key: key, PromptSHA256: llms.PromptSHA256(messages)}
	if known, ok := w.journal.answer(repo, key); ok && known.PromptSHA256 == answer.PromptSHA256 {
		return known, nil
	}
	m, account := w.cfg.Model, &account{budget: w.budget}
	resp, err := m.Client.Chat(llms.WithAccount(ctx, account), llms.Request{
		Messages: messages, Sampling: m.Sampling, SessionID: "synth-" + schemas.ShortHash([]string{repo, key}),
	})
	answer.Payment = account.paid
	switch class := llms.ClassOf(err); {
	case class == llms.ClassContext, class == llms.ClassRefusal:
		answer.Refused = err.Error()
	case err != nil:
		if class != "" {
			err = &modelError{err}
		}
		return answer, fmt.Errorf("asking %s: %w", m.Client.Model(), err)
	}
	answer.Answer, answer.Model = resp.Reply.Message, resp.Reply.Model
	if answer.Model == "" {
		answer.Model = m.Client.Model()
	}
	return answer, w.journal.add(entry{Answer: &answer})
}

var _ llms.Account = (*account)(nil)
