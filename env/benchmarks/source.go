package benchmarks

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// taskSource is an env.Source over a list that is read once, at first use, and
// stays as it was then. A read that went wrong is tried again.
type taskSource struct {
	name string
	read func(context.Context) ([]placedTask, error)

	mu    sync.Mutex
	ready bool
	list  []placedTask
}

// placedTask is a task with the files it is about.
type placedTask struct {
	task schemas.Task
	tree env.Tree
}

func (s *taskSource) Name() string { return s.name }

func (s *taskSource) Tasks(ctx context.Context) ([]schemas.Task, error) {
	list, err := s.loaded(ctx)
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
	list, err := s.loaded(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if p.task.InstanceID == instance {
			return p.tree, nil
		}
	}
	return nil, fmt.Errorf("task source %q has no task %q", s.name, instance)
}

func (s *taskSource) loaded(ctx context.Context) ([]placedTask, error) {
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

// place fills what a task leaves open and pins it to its tree.
func place(t schemas.Task, source string, tree env.Tree) placedTask {
	t.Source = source
	t.Language = "python"
	if t.Repo == "" {
		t.Repo = source + "/" + t.InstanceID
	}
	if t.Workdir == "" {
		t.Workdir = schemas.DefaultWorkdir
	}
	if t.Tests.Method == "" {
		t.Tests.Method = methodFor(t.Entrypoint)
	}
	if len(t.Tests.Files) == 0 {
		t.Tests.Files = DefaultTestFiles()
	}
	// The tests are part of the tree and the entrypoint runs them.
	t.Visibility = "runnable"
	t.TreeSHA256 = tree.SHA256()
	t.ID = t.ComputeID()
	return placedTask{task: t, tree: tree}
}

// methodFor guesses from the command line how its results can be read.
func methodFor(entrypoint string) string {
	switch {
	case strings.Contains(entrypoint, "pytest"):
		return schemas.VerifyPytest
	case strings.Contains(entrypoint, "unittest"):
		return schemas.VerifyUnittest
	}
	return schemas.VerifyExitCode
}
