package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const tasksFile = "tasks.json"

// legacyTasks is the name under which Info.Identity of earlier versions has the set of tasks.
const legacyTasks = "tasks"

// Plan is what a run selects. It may differ between invocations, but a task must not change.
type Plan struct {
	Tasks    map[string]string // IDs, which hash the content, by source and instance
	Attempts int
	// Set identifies the set of tasks, as directories of earlier versions record it instead of
	// having a file with tasks.
	Set string
}

// recordedTasks is the content of tasks.json.
type recordedTasks struct {
	Schema   string            `json:"schema"`
	Attempts int               `json:"attempts"` // the most that an invocation selected
	Tasks    map[string]string `json:"tasks"`    // all that an invocation selected
}

// recordTasks adds a plan to the tasks of a directory and returns them all. It returns an error if a
// task has changed. legacySet is the set of tasks that run.json records, "" if it has none.
func recordTasks(dir, legacySet string, p Plan) (recordedTasks, error) {
	path := filepath.Join(dir, tasksFile)
	raw, err := os.ReadFile(path)
	have := recordedTasks{Schema: "tracesmith.tasks/1", Tasks: map[string]string{}}
	switch {
	case err == nil:
		if err := json.Unmarshal(raw, &have); err != nil || have.Tasks == nil {
			return have, &Error{Err: fmt.Errorf("%s is not a list of tasks", path), Remedy: "choose another --run-dir, or restore the file"}
		}
	case !errors.Is(err, fs.ErrNotExist):
		return have, fmt.Errorf("reading the tasks of the run: %w", err)
	case legacySet != "" && legacySet != p.Set:
		return have, &Error{
			Err:    fmt.Errorf("%s holds a run with other tasks (%s, not %s), and the version that began it did not record which", dir, legacySet, p.Set),
			Remedy: "select the same tasks, choose another --run-dir, or --fresh to move the old run aside",
		}
	}
	var changed []string
	for name, id := range p.Tasks {
		if old, ok := have.Tasks[name]; ok && old != id {
			changed = append(changed, name)
		}
	}
	if len(changed) > 0 {
		return have, changedError(dir, changed)
	}
	all := recordedTasks{Schema: have.Schema, Attempts: max(have.Attempts, p.Attempts), Tasks: maps.Clone(have.Tasks)}
	maps.Copy(all.Tasks, p.Tasks)
	if all.Attempts == have.Attempts && len(all.Tasks) == len(have.Tasks) {
		return all, nil
	}
	body, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return all, fmt.Errorf("encoding %s: %w", tasksFile, err)
	}
	return all, replaceFile(path, append(body, '\n'))
}

// changedError says that tasks have another content than the run recorded.
func changedError(dir string, changed []string) error {
	slices.Sort(changed)
	const listed = 5
	more, verb := "", "have"
	if n := len(changed) - listed; n > 0 {
		changed, more = changed[:listed], fmt.Sprintf(" and %d more", n)
	} else if len(changed) == 1 {
		verb = "has"
	}
	return &Error{
		Err:    fmt.Errorf("the run in %s began with another version of a task: %s%s %s changed since", dir, strings.Join(changed, ", "), more, verb),
		Remedy: "undo the change, give the changed task a new id, choose another --run-dir, or --fresh to move the old run aside",
	}
}
