package synth

import (
	"context"
	"fmt"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// ask returns the model's answer to a prompt, from the journal if it is there. The
// error is llms.ErrBudget if the budget prevented the call. A permanent error of the
// model server ends the run.
func (w *worker) ask(ctx context.Context, repo, key, prompt string) (modelAnswer, error) {
	messages := []llms.Message{{Role: "user", Content: prompt}}
	said := modelAnswer{Repo: repo, Key: key, PromptSHA256: llms.PromptSHA256(messages)}
	if known, ok := w.journal.answer(repo, key); ok && known.PromptSHA256 == said.PromptSHA256 {
		return known, nil
	}
	m, account := w.cfg.Model, &account{purse: w.budget}
	resp, err := m.Client.Chat(llms.WithAccount(ctx, account), llms.Request{
		Messages: messages, Sampling: m.Sampling, SessionID: "synth-" + schemas.ShortHash([]string{repo, key}),
	})
	said.Payment = account.paid
	switch class := llms.ClassOf(err); {
	case class == llms.ClassContext, class == llms.ClassRefusal:
		said.Refused = err.Error()
	case err != nil:
		if class != "" {
			err = &modelError{err}
		}
		return said, fmt.Errorf("asking %s: %w", m.Client.Model(), err)
	}
	said.Answer, said.Model = resp.Reply.Message, resp.Reply.Model
	if said.Model == "" {
		said.Model = m.Client.Model()
	}
	return said, w.journal.add(entry{Answer: &said})
}

var _ llms.Account = (*account)(nil)
