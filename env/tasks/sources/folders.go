package sources

import (
	"archive/zip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/workspace"
)

// CollectionConfig configures a source that reads a collection of small programs on this machine.
type CollectionConfig struct {
	Path     string              `json:"path"`     // directory, git clone, .zip or .tar
	Commit   string              `json:"commit"`   // commit of a clone; unset = HEAD
	Problems Problems            `json:"problems"` // all, an id, the name of a split, or a list of ids
	Exclude  []string            `json:"exclude"`  // ids that "all" leaves out
	Splits   map[string][]string `json:"splits"`   // further splits: a name and its ids
}

// openCollection reads the files of a collection. remedy says in errors what to set Path to.
func openCollection(ctx context.Context, cfg CollectionConfig, remedy string) (*workspace.Tree, error) {
	info, err := os.Stat(cfg.Path)
	switch {
	case cfg.Path == "":
		return nil, fmt.Errorf("the setting \"path\" is missing: %s", remedy)
	case err != nil:
		return nil, fmt.Errorf("%s cannot be opened: %s", cfg.Path, remedy)
	case strings.HasSuffix(cfg.Path, ".zip"):
		z, err := zip.OpenReader(cfg.Path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.Path, err)
		}
		return workspace.FromFS(z, ".") // z stays open, because files are read later
	case !info.IsDir():
		return taskfile.Open(cfg.Path, taskfile.DefaultCache())
	}
	for _, git := range []string{filepath.Join(cfg.Path, ".git"), cfg.Path} {
		if exists(filepath.Join(git, "objects")) && exists(filepath.Join(git, "HEAD")) {
			commit := cfg.Commit
			if commit == "" {
				head, err := gitOut(ctx, git, nil, "rev-parse", "HEAD")
				if err != nil {
					return nil, err
				}
				commit = strings.TrimSpace(string(head))
			}
			repos := repositories{clones: filepath.Dir(filepath.Clean(cfg.Path)), cache: taskfile.DefaultCache()}
			return repos.treeAt(ctx, git, commit, cfg.Path)
		}
	}
	return workspace.FromDir(cfg.Path)
}

// pick returns the tasks that Problems and Exclude choose.
func (cfg CollectionConfig) pick(list []placedTask) ([]placedTask, error) {
	var ids []string
	byID := map[string]placedTask{}
	for _, p := range list {
		ids = append(ids, p.task.InstanceID)
		byID[p.task.InstanceID] = p
	}
	chosen, err := cfg.Problems.choose(ids, cfg.Splits, cfg.Exclude)
	if err != nil {
		return nil, err
	}
	var out []placedTask
	for _, id := range chosen {
		out = append(out, byID[id])
	}
	return out, nil
}
