package verify

import (
	"context"
	"errors"
	"sync"

	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// layouts remembers the layouts of base trees. Safe for concurrent use.
type layouts struct {
	mu    sync.Mutex
	known map[string]*repository
}

// maxLayouts bounds how many layouts a verifier remembers.
const maxLayouts = 256

// get returns the layout of a task's base tree.
func (l *layouts) get(ctx context.Context, store *workspace.Store, t schemas.Task, spec schemas.TestSpec, base string) (*repository, error) {
	key := schemas.Hash([]any{base, t.Entrypoint, t.GoldPatch, spec})
	l.mu.Lock()
	known := l.known[key]
	l.mu.Unlock()
	if known != nil {
		return known, nil
	}
	files, err := store.Files(ctx, base)
	if err != nil {
		return nil, err
	}
	var gold []string
	if t.GoldPatch != "" {
		fixed, err := store.Apply(ctx, base, []byte(t.GoldPatch))
		if _, odd := errors.AsType[*workspace.ApplyError](err); err != nil && !odd {
			return nil, err
		} else if !odd {
			changes, err := store.Changed(ctx, base, fixed)
			if err != nil {
				return nil, err
			}
			for _, c := range changes {
				gold = append(gold, c.Path)
			}
		}
	}
	texts, err := store.Texts(ctx, base, readByLayout)
	if err != nil {
		return nil, err
	}
	r := layout(t, spec, files, func(file string) string { return texts[file] }, gold)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || len(l.known) >= maxLayouts {
		l.known = map[string]*repository{}
	}
	l.known[key] = r
	return r, nil
}
