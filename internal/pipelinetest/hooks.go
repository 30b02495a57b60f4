package pipelinetest

import (
	"context"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/sinks"
)

// Points lists, in order, the points that every job reaches and for which Hooks calls its function.
var Points = []string{
	"claimed", "logged-reply", "logged-step", "logged-rollout", "logged-verdict", "before-stage", "staged", "done", "acked",
}

// Hooks returns hooks that call at with the name of each point that a job reaches. Two of these
// points are just before and just after the job stages its episode.
func Hooks(at func(point string)) pipeline.Hooks {
	return pipeline.Hooks{At: at, Staging: func(s sinks.Store) sinks.Store { return watchedStore{s, at} }}
}

// watchedStore calls at before it creates a staged episode, and afterwards if that succeeded.
type watchedStore struct {
	sinks.Store
	at func(point string)
}

func (s watchedStore) Create(ctx context.Context, key string, body []byte) error {
	if !strings.HasPrefix(key, "staging/") {
		return s.Store.Create(ctx, key, body)
	}
	s.at("before-stage")
	err := s.Store.Create(ctx, key, body)
	if err == nil {
		s.at("staged")
	}
	return err
}

// UnfinishedWrites implements sinks.Sweeper. It returns nothing if the wrapped store is not a
// Sweeper.
func (s watchedStore) UnfinishedWrites(ctx context.Context) ([]sinks.UnfinishedWrite, error) {
	if sweeper, ok := s.Store.(sinks.Sweeper); ok {
		return sweeper.UnfinishedWrites(ctx)
	}
	return nil, nil
}
