package lab

import (
	"context"
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// firstTask returns the first selected task of the workbench's source.
func firstTask(ctx context.Context, bench *wire.Workbench, cfg configs.Tasks) (schemas.Task, error) {
	tasks, err := wire.SelectTasks(ctx, bench.Source, cfg)
	if err != nil {
		return schemas.Task{}, err
	}
	return tasks[0], nil
}

// programLine finds a line of a task's program at which a debugger can stop: the first statement of
// the first function outside the tests.
func programLine(ctx context.Context, bench *wire.Workbench, t schemas.Task) (file string, line int, err error) {
	tree, err := bench.Source.Tree(ctx, t.InstanceID)
	if err != nil {
		return "", 0, fmt.Errorf("reading the repository of %s: %w", t.InstanceID, err)
	}
	files, ok := tree.(*workspace.Tree)
	if !ok {
		return "", 0, fmt.Errorf("the repository of task %s is only in its image", t.InstanceID)
	}
	for _, path := range files.Paths() {
		if !strings.HasSuffix(path, ".py") || strings.Contains(path, "test") {
			continue
		}
		body, _, _, err := files.File(path)
		if err != nil {
			return "", 0, err
		}
		if n := firstStatement(string(body)); n > 0 {
			return path, n, nil
		}
	}
	return "", 0, fmt.Errorf("task %s has no program line to stop at", t.InstanceID)
}

// firstStatement returns the number of the first line that follows a one-line def and is
// a return, an assignment or a condition; 0 if the source has no such line.
func firstStatement(source string) int {
	lines := strings.Split(source, "\n")
	for i := 1; i < len(lines); i++ {
		text := strings.TrimSpace(lines[i])
		if strings.HasPrefix(strings.TrimSpace(lines[i-1]), "def ") && strings.HasSuffix(lines[i-1], ":") &&
			(strings.HasPrefix(text, "return ") || strings.HasPrefix(text, "if ") || strings.Contains(text, " = ")) {
			return i + 1
		}
	}
	return 0
}
