package sources

import (
	"context"
	"fmt"
	"sync"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// register adds a source with settings of type S to env.Sources. defaults returns the settings that a configuration
// starts from; nil stands for the zero value.
func register[S any](kind, summary string, defaults func() S, open func(S) (env.Source, error)) {
	env.Sources.Register(plugin.Spec[env.Source, struct{}]{
		Kind: kind, Summary: summary,
		Default: func() any {
			settings := new(S)
			if defaults != nil {
				*settings = defaults()
			}
			return settings
		},
		New: func(settings any, _ struct{}) (env.Source, error) { return open(*settings.(*S)) },
	})
}

// taskSource is an env.Source with a list of tasks that is read at its first use. If reading fails, the next use reads
// it again.
type taskSource struct {
	name string
	read func(context.Context) ([]placedTask, error)

	mu    sync.Mutex
	ready bool
	list  []placedTask
}

// placedTask is a task with a function that opens its files.
type placedTask struct {
	task schemas.Task
	open func() (*workspace.Tree, error)
}

func (s *taskSource) Name() string { return s.name }

func (s *taskSource) Tasks(ctx context.Context) ([]schemas.Task, error) {
	list, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	tasks := make([]schemas.Task, len(list))
	for i, p := range list {
		tasks[i] = p.task
	}
	return tasks, nil
}

func (s *taskSource) Tree(ctx context.Context, instance string) (env.Tree, error) {
	list, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if p.task.InstanceID == instance {
			return p.open()
		}
	}
	return nil, fmt.Errorf("task source %q has no task %q", s.name, instance)
}

func (s *taskSource) load(ctx context.Context) ([]placedTask, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready {
		return s.list, nil
	}
	list, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	s.list, s.ready = list, true
	return list, nil
}

// newPlacedTask completes a task, including the hash of its files and their license.
func newPlacedTask(t schemas.Task, source string, files *workspace.Tree) placedTask {
	t.Source, t.TreeSHA256 = source, files.SHA256()
	if t.License == "" {
		t.License, t.LicenseFile = License(files)
	}
	return placedTask{task: taskfile.Complete(t, source), open: func() (*workspace.Tree, error) { return files, nil }}
}
