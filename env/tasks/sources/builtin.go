package sources

import (
	"context"
	"embed"
	"io/fs"

	"github.com/tracesmith/tracesmith/env"
)

// builtinTasks are the tasks in the binary: small Python programs with a bug that is far from its symptom.
//
//go:embed all:builtin/tasks
var builtinTasks embed.FS

// BuiltinConfig selects from the embedded tasks.
type BuiltinConfig struct {
	IDs []string `json:"ids"` // instance ids to read; unset = all
}

func init() {
	register("builtin", "small Python programs embedded in the binary, each with one bug", nil, newBuiltin)
}

func newBuiltin(cfg BuiltinConfig) (env.Source, error) {
	tasks, err := fs.Sub(builtinTasks, "builtin/tasks")
	if err != nil {
		return nil, err
	}
	return &taskSource{name: "builtin", read: func(ctx context.Context) ([]placedTask, error) {
		list, err := readFolder(ctx, tasks, "builtin", "builtin")
		if err != nil {
			return nil, err
		}
		return selectIDs(list, cfg.IDs)
	}}, nil
}
