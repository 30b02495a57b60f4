package verify

import (
	"context"
	"errors"
	"sync"

	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// layoutCache caches the layouts of base trees. It is safe for concurrent use.
type layoutCache struct {
	mu    sync.Mutex
	known map[string]*repoLayout
}

// maxLayouts is the number of layouts after which the cache is cleared.
const maxLayouts = 256

// get returns the layout of a task's base tree.
func (l *layoutCache) get(ctx context.Context, store *workspace.Store, t schemas.Task, spec schemas.TestSpec, base string) (*repoLayout, error) {
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
		if _, unfit := errors.AsType[*workspace.ApplyError](err); err != nil && !unfit {
			return nil, err
		} else if !unfit {
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
	r := readLayout(t, spec, files, func(file string) string { return texts[file] }, gold)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || len(l.known) >= maxLayouts {
		l.known = map[string]*repoLayout{}
	}
	l.known[key] = r
	return r, nil
}
