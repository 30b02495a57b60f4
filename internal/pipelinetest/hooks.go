package pipelinetest

import (
	"context"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/sinks"
)

// Points lists the points of every job at which Hooks calls its function, in order.
var Points = []string{
	"claimed", "logged-reply", "logged-step", "logged-rollout", "logged-verdict", "before-stage", "staged", "done", "acked",
}

// Hooks returns hooks that call at with the name of each point that a job reaches, also before
// and after it stages its episode.
func Hooks(at func(point string)) pipeline.Hooks {
	return pipeline.Hooks{At: at, Staging: func(s sinks.Store) sinks.Store { return watchedStore{s, at} }}
}

// watchedStore calls at before and after it creates an episode.
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

// Torn implements sinks.Sweeper, as far as the store does.
func (s watchedStore) Torn(ctx context.Context) ([]sinks.Torn, error) {
	if sweeper, ok := s.Store.(sinks.Sweeper); ok {
		return sweeper.Torn(ctx)
	}
	return nil, nil
}
