package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/workspace"
)

// File names of a task directory.
const (
	taskName  = "task.yaml"
	repoName  = "repo"
	patchName = "gold.patch"
)

// maxTaskBytes is the largest size of a task.yaml and of a gold.patch.
const maxTaskBytes = 4 << 20

// readFolder reads every task directory directly below fsys, in the order of their names. label is the name of fsys in
// messages. It skips files, and directories whose names begin with "." or "_".
func readFolder(ctx context.Context, fsys fs.FS, label, source string) ([]placedTask, error) {
	dirs, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", label, err)
	}
	var list []placedTask
	var problems []error
	dirOf := map[string]string{} // by instance id
	for _, d := range dirs {
		if !d.IsDir() || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := readTask(fsys, label, d.Name(), source)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		id := p.task.InstanceID
		if other, found := dirOf[id]; found {
			problems = append(problems, fmt.Errorf("%s and %s are both called %q: change one instance_id",
				path.Join(label, other), path.Join(label, d.Name()), id))
		}
		dirOf[id] = d.Name()
		list = append(list, p)
	}
	if len(list)+len(problems) == 0 {
		problems = append(problems, fmt.Errorf("%s contains no task directories: each needs a %s and a %s/",
			label, taskName, repoName))
	}
	return list, errors.Join(problems...)
}

func readTask(fsys fs.FS, label, dir, source string) (placedTask, error) {
	where := path.Join(label, dir)
	data, err := readBounded(fsys, path.Join(dir, taskName))
	if err != nil {
		return placedTask{}, problemWith(where, taskName, err)
	}
	task, err := parseTaskFile(path.Join(where, taskName), dir, data)
	if err != nil {
		return placedTask{}, err
	}
	patch, err := readBounded(fsys, path.Join(dir, patchName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return placedTask{}, problemWith(where, patchName, err)
	}
	if err == nil {
		if err := taskfile.CheckPatch(patch); err != nil {
			return placedTask{}, problemWith(where, patchName, err)
		}
		task.GoldPatch = string(patch)
	}
	repo := path.Join(dir, repoName)
	if info, err := fs.Stat(fsys, repo); err != nil {
		return placedTask{}, problemWith(where, repoName, err)
	} else if !info.IsDir() {
		return placedTask{}, fmt.Errorf("%s is not a directory", path.Join(where, repoName))
	}
	files, err := workspace.FromFS(fsys, repo)
	if err != nil {
		return placedTask{}, fmt.Errorf("%s: %w", where, err)
	}
	if len(files.Paths()) == 0 {
		return placedTask{}, fmt.Errorf("%s is empty: put the program there", path.Join(where, repoName))
	}
	return newPlacedTask(task, source, files), nil
}

// problemWith returns an error about a file in a task directory.
func problemWith(where, name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no %s: a task directory contains %s, %s/ and optionally %s",
			where, name, taskName, repoName, patchName)
	}
	return fmt.Errorf("%s: %w", path.Join(where, name), err)
}

// readBounded reads a regular file of at most maxTaskBytes. It refuses other kinds of files before it opens them,
// because opening a named pipe may block forever.
func readBounded(fsys fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTaskBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxTaskBytes {
		return nil, fmt.Errorf("larger than %d MB", maxTaskBytes>>20)
	}
	return data, nil
}

// selectIDs returns the tasks with the given ids, in the order of list, or all tasks if there are no ids.
func selectIDs(list []placedTask, ids []string) ([]placedTask, error) {
	if len(ids) == 0 {
		return list, nil
	}
	wanted := map[string]bool{}
	for _, id := range ids {
		wanted[id] = true
	}
	var kept []placedTask
	var names []string
	for _, p := range list {
		names = append(names, p.task.InstanceID)
		if wanted[p.task.InstanceID] {
			kept = append(kept, p)
			delete(wanted, p.task.InstanceID)
		}
	}
	for _, id := range ids {
		if wanted[id] {
			return nil, fmt.Errorf("no task %q: choose from %s", id, strings.Join(names, ", "))
		}
	}
	return kept, nil
}
