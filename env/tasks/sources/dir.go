package sources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tracesmith/tracesmith/env"
)

// DirConfig names a directory of task directories.
type DirConfig struct {
	Path string   `json:"path"` // directory of task directories
	IDs  []string `json:"ids"`  // instance ids to read; unset = all
}

func init() {
	register("dir", "a directory of tasks, each with task.yaml, repo/ and optionally gold.patch", nil, newDir)
}

func newDir(cfg DirConfig) (env.Source, error) {
	if err := checkDirectory(cfg.Path); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(cfg.Path, taskName)); err == nil {
		return nil, fmt.Errorf("%s is itself a task: give the directory above it", cfg.Path)
	}
	return &taskSource{name: "dir", read: func(ctx context.Context) ([]placedTask, error) {
		list, err := readFolder(ctx, os.DirFS(cfg.Path), cfg.Path, "dir")
		if err != nil {
			return nil, err
		}
		return selectIDs(list, cfg.IDs)
	}}, nil
}

// checkDirectory checks the setting "path" of a source.
func checkDirectory(path string) error {
	if path == "" {
		return errors.New(`the setting "path" is missing: name a directory`)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist: name a directory", path)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is a file: name its directory", path)
	}
	return nil
}
