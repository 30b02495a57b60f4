package sources

import (
	"context"
	"errors"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
)

// FileConfig names a task file.
type FileConfig struct {
	Path string   `json:"path"` // task file, .jsonl or .parquet
	IDs  []string `json:"ids"`  // instance ids to read; unset = all
}

func init() {
	register("file", "a task file: JSONL or Parquet, one task per row, repositories beside it", nil, newFile)
}

func newFile(cfg FileConfig) (env.Source, error) {
	if cfg.Path == "" {
		return nil, errors.New(`the setting "path" is missing: name a task file (.jsonl or .parquet)`)
	}
	return &taskSource{name: "file", read: func(ctx context.Context) ([]placedTask, error) {
		entries, err := taskfile.Read(ctx, cfg.Path, "")
		if err != nil {
			return nil, err
		}
		list := make([]placedTask, len(entries))
		for i, e := range entries {
			list[i] = placedTask{task: e.Task, open: e.Tree}
		}
		return selectIDs(list, cfg.IDs)
	}}, nil
}
