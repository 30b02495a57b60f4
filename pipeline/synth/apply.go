package synth

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracesmith/tracesmith/env/mutate"
)

// apply creates a candidate's patch and fills in the fields of the trial that describe it.
func (w *worker) apply(ctx context.Context, s *repoState, c candidate, t *Trial) error {
	m, err := w.mutation(ctx, s, c, t)
	if refused, ok := errors.AsType[*mutate.RefusedError](err); ok {
		t.Outcome, t.Reason = Refused, refused.Why
	} else if err != nil {
		return err
	}
	for _, f := range m.Funcs {
		t.Funcs = append(t.Funcs, f.File+"::"+f.Name)
	}
	if len(c.Sites) == 0 {
		t.Operators = []string{c.Kind}
		for _, f := range m.Funcs {
			t.Sites = append(t.Sites, fmt.Sprintf("%s:%d", f.File, f.Line))
		}
	}
	for _, site := range c.Sites {
		t.Operators = append(t.Operators, site.Operator)
		t.Sites = append(t.Sites, fmt.Sprintf("%s:%d", site.File, site.Line))
	}
	t.Patch, t.Body, t.Shape = string(m.Patch), m.BodyHash, m.Shape
	_, t.Lines = changedLines(t.Patch)
	return nil
}

// mutation returns the change that a candidate makes. It is a mutate.RefusedError if there is none.
func (w *worker) mutation(ctx context.Context, s *repoState, c candidate, t *Trial) (mutate.Mutation, error) {
	switch c.Kind {
	case KindCommit:
		t.Commit = c.Commit
		return w.bench.mutator.Invert(ctx, s.history, c.Commit, isTest)
	case KindModel:
		prompt, err := w.bench.mutator.BugPrompt(ctx, *c.Target)
		if err != nil {
			return mutate.Mutation{}, err
		}
		answer, err := w.ask(ctx, t.Repo, c.Key, prompt)
		if err != nil {
			return mutate.Mutation{}, err
		}
		t.Model, t.PromptSHA256 = answer.Model, answer.PromptSHA256
		if answer.Refused != "" {
			return mutate.Mutation{}, &mutate.RefusedError{Why: answer.Refused}
		}
		return w.bench.mutator.FromAnswer(ctx, *c.Target, answer.Answer)
	}
	return w.bench.mutator.Apply(ctx, c.Sites)
}
