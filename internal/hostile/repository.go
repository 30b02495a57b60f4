package hostile

import (
	"context"
	"embed"
	"fmt"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

//go:embed repository
var files embed.FS

// Repository is a source of one task: a small program whose tests run the file hostile.sh if
// a case has written it.
type Repository struct{}

// instance is the id of the one task.
const instance = "hostile"

// Entrypoint is the command that ordinary debugger calls debug.
const Entrypoint = "python3 app.py"

// Name implements env.Source.
func (Repository) Name() string { return instance }

// Tasks implements env.Source.
func (r Repository) Tasks(ctx context.Context) ([]schemas.Task, error) {
	t, err := r.Tree(ctx, instance)
	if err != nil {
		return nil, err
	}
	task := schemas.Task{
		Source: instance, InstanceID: instance, Repo: instance, Language: "python",
		Instructions: "Survive.", Entrypoint: "sh check.sh", DebugEntrypoint: Entrypoint,
		Workdir: schemas.DefaultWorkdir, TreeSHA256: t.SHA256(), Tests: schemas.TestSpec{Method: schemas.VerifyExitCode},
		Visibility: "visible",
	}
	task.ID = task.ComputeID()
	return []schemas.Task{task}, nil
}

// Tree implements env.Source.
func (Repository) Tree(context.Context, string) (env.Tree, error) {
	t, err := workspace.FromFS(files, "repository")
	if err != nil {
		return nil, fmt.Errorf("reading the hostile repository: %w", err)
	}
	return t, nil
}
