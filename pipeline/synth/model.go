package synth

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Model writes bugs and issue texts.
type Model struct {
	Client   llms.Client
	Sampling llms.Sampling
}

// identity is what must stay the same when a run goes on; "" of no model.
func (m *Model) identity() string {
	if m == nil {
		return ""
	}
	return m.Client.Provider() + " " + m.Client.Model() + " " + schemas.ShortHash(m.Sampling)
}

// spoken is a model's answer: a line of the journal, so that it is never asked for
// again.
type spoken struct {
	Repo         string          `json:"repo"`
	Key          string          `json:"key"` // the candidate's, or textKey of it
	Model        string          `json:"model"`
	PromptSHA256 string          `json:"prompt_sha256"`
	Answer       string          `json:"answer"`
	Refused      string          `json:"refused,omitempty"` // why there is no answer
	Payment      schemas.Payment `json:"payment"`
}

// ask has the model answer a prompt, unless the journal holds its answer. An error
// that is llms.ErrBudget says that it was not asked; one of a model server that
// repeating cannot help ends the run.
func (w *worker) ask(ctx context.Context, repo, key, prompt string) (spoken, error) {
	messages := []llms.Message{{Role: "user", Content: prompt}}
	said := spoken{Repo: repo, Key: key, PromptSHA256: llms.PromptSHA256(messages)}
	if known, ok := w.journal.answer(repo, key); ok && known.PromptSHA256 == said.PromptSHA256 {
		return known, nil
	}
	m, account := w.cfg.Model, &account{purse: w.purse}
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

// modelError is a failure of a model server that its client's retries have not
// mended.
type modelError struct{ error }

func (e *modelError) Unwrap() error { return e.error }

// purse is what a run may spend on models. Safe for concurrent use.
type purse struct {
	mu          sync.Mutex
	limit       float64 // USD; 0 = none
	spent, held float64
	settled     chan struct{} // closed when a call has ended
}

func newPurse(limit, spent float64) *purse {
	return &purse{limit: limit, spent: spent, settled: make(chan struct{})}
}

// begin sets worst aside. It waits while calls under way hold what may be left.
func (p *purse) begin(ctx context.Context, worst float64) error {
	for {
		p.mu.Lock()
		if p.limit > 0 && p.spent+worst > p.limit {
			p.mu.Unlock()
			return fmt.Errorf("%w: %.4f of %.4f USD are spent, a call may cost %.4f", llms.ErrBudget, p.spent, p.limit, worst)
		}
		if p.limit <= 0 || p.spent+p.held+worst <= p.limit {
			p.held += worst
			p.mu.Unlock()
			return nil
		}
		wait := p.settled
		p.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *purse) end(worst, spent float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held -= worst
	p.spent += spent
	close(p.settled)
	p.settled = make(chan struct{})
}

func (p *purse) total() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent
}

// account is the purse as one question sees it.
type account struct {
	purse *purse
	worst float64
	paid  schemas.Payment // of its last call, with what all before put at risk
}

var _ llms.Account = (*account)(nil)

// Begin implements llms.Account.
func (a *account) Begin(ctx context.Context, worst float64) (context.Context, error) {
	a.worst = worst
	return ctx, a.purse.begin(ctx, worst)
}

// End implements llms.Account.
func (a *account) End(_ context.Context, p schemas.Payment) error {
	a.purse.end(a.worst, p.Spent())
	p.AtRiskUSD += a.paid.AtRiskUSD
	a.paid = p
	return nil
}

// Attempt implements llms.Account.
func (a *account) Attempt() int { return 0 }

// FromCache implements llms.Account.
func (a *account) FromCache() {}

// spent is what the answers in the journal have cost at most.
func (j *journal) spent() float64 {
	total := 0.0
	for _, answers := range j.answers {
		for _, a := range answers {
			total += a.Payment.Spent()
		}
	}
	return total
}

// unasked says that only the budget stands in the way.
func unasked(err error) bool { return errors.Is(err, llms.ErrBudget) }
