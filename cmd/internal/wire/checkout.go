package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/sources"
	"github.com/tracesmith/tracesmith/pipeline/synth"
)

// CheckCheckout returns an error unless a directory is a checkout of a Python project.
func CheckCheckout(dir string) error {
	list, _, err := repositoriesIn(dir)
	switch {
	case err != nil:
		return err
	case slices.Contains(list, dir) && isRepository(dir):
		return nil
	case slices.Contains(list, dir):
		return fmt.Errorf("%s contains no Python project (*.py, pyproject.toml, setup.cfg, tests or src): name the directory of a checkout", dir)
	}
	return fmt.Errorf("%s is a directory of several projects: name one of them, such as %s", dir, list[0])
}

// repositoriesIn returns path if it looks like a repository, or else the directories in it that do. others are the
// directories in it that do not.
func repositoriesIn(path string) (repositories, others []string, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("%s does not exist: name a repository, or a directory of repositories", path)
	case err != nil:
		return nil, nil, fmt.Errorf("reading a repository: %w", err)
	case !info.IsDir():
		return nil, nil, fmt.Errorf("%s is not a directory: name a repository, or a directory of repositories", path)
	case isRepository(path):
		return []string{path}, nil, nil
	}
	list, err := os.ReadDir(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", path, err)
	}
	for _, e := range list {
		dir := filepath.Join(path, e.Name())
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if isRepository(dir) {
			repositories = append(repositories, dir)
		} else {
			others = append(others, e.Name())
		}
	}
	if len(repositories) == 0 {
		return []string{path}, nil, nil // package synth reports what is missing
	}
	return repositories, others, nil
}

// CheckoutWarnings returns what a user may not know about a checkout, one line for each fact. With commit, its files
// come from that commit.
func CheckoutWarnings(ctx context.Context, r synth.Repo, commit string) []string {
	var out []string
	if r.Task.License == "" {
		out = append(out, "no license was found in "+r.Task.InstanceID+": the license of its tasks is unknown")
	}
	if r.History == "" || r.Task.BaseCommit == "" || commit != "" {
		return out
	}
	head, err := sources.AtCommit(ctx, r.History, r.Task.BaseCommit)
	if err != nil {
		return out // for example a work tree whose history is elsewhere
	}
	changed := slices.DeleteFunc(r.Tree.ChangedFrom(head), func(file string) bool { return !strings.HasSuffix(file, ".py") })
	if len(changed) > 0 {
		more := ""
		if len(changed) > 1 {
			more = fmt.Sprintf(" and %d more", len(changed)-1)
		}
		out = append(out, fmt.Sprintf("%s has uncommitted changes (%s%s), which become part of its tasks", r.Task.InstanceID, changed[0], more))
	}
	return out
}
