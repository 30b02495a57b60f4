package taskfile

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

// Bounds of a task file.
const (
	maxLine  = 64 << 20
	maxTasks = 1 << 20
	maxSaid  = 20 // problems told at once
)

// line is one row: a task and where its repository lies.
type line struct {
	schemas.Task
	RepoTree string `json:"repo_tree"`
	Schema   string `json:"schema,omitempty"` // of the object that tasks show prints
}

// Schema is the value of schema in the object of one task.
const Schema = "tracesmith.task/1"

// Entry is a task of a file with the way to its repository. Safe for concurrent use.
type Entry struct {
	Task     schemas.Task // complete, see Complete
	RepoTree string       // as the file names it

	where string
	trees *treeCache
	once  sync.Once
	tree  *workspace.Tree
	err   error
}

// Tree is the repository with the task's bug patch, checked against
// Task.TreeSHA256. It is made at the first call.
func (e *Entry) Tree() (*workspace.Tree, error) {
	e.once.Do(func() {
		if e.tree, e.err = e.make(); e.err != nil {
			e.err = fmt.Errorf("%s: task %s: %w", e.where, e.Task.InstanceID, e.err)
		}
	})
	return e.tree, e.err
}

// Repository is the tree before the bug patch, as the file names it.
func (e *Entry) Repository() (*workspace.Tree, error) {
	t, err := e.trees.open(e.RepoTree)
	if err != nil {
		return nil, fmt.Errorf("%s: task %s: %w", e.where, e.Task.InstanceID, err)
	}
	return t, nil
}

func (e *Entry) make() (*workspace.Tree, error) {
	healthy, err := e.trees.open(e.RepoTree)
	if err != nil {
		return nil, err
	}
	t, err := Apply(healthy, []byte(e.Task.BugPatch))
	if err != nil {
		return nil, fmt.Errorf("bug_patch: %w", err)
	}
	if want := e.Task.TreeSHA256; want != "" && t.SHA256() != want {
		return nil, fmt.Errorf("%s with the bug patch has tree_sha256 %s, and the task is about %s: it was changed, or is another one",
			e.RepoTree, t.SHA256(), want)
	}
	return t, nil
}

// Read reads a task file: Parquet where the name ends in .parquet, else JSONL.
// Every line that cannot be used is told, as "file:line: what is wrong". Tasks
// that do not pin their tree are pinned to it as it is now. cache is for
// unpacked repositories, "" = DefaultCache.
func Read(ctx context.Context, name, cache string) ([]*Entry, error) {
	s := &treeCache{root: filepath.Dir(name), cache: cmp.Or(cache, DefaultCache())}
	r := reader{trees: s, name: name, seen: map[string]string{}}
	var err error
	if strings.HasSuffix(name, ".parquet") {
		err = r.parquet(ctx)
	} else {
		err = r.jsonl(ctx)
	}
	if err != nil {
		return nil, err
	}
	if len(r.problems) == 0 && len(r.entries) == 0 {
		return nil, fmt.Errorf("%s holds no task: want one JSON object per line", name)
	}
	return r.entries, errors.Join(r.problems...)
}

type reader struct {
	trees    *treeCache
	name     string
	seen     map[string]string // instance id -> where
	entries  []*Entry
	problems []error
}

func (r *reader) jsonl(ctx context.Context) error {
	f, err := os.Open(r.name)
	if err != nil {
		return fmt.Errorf("opening the task file: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s is no regular file: name a task file (.jsonl or .parquet)", r.name))
	}
	in := bufio.NewScanner(f)
	in.Buffer(make([]byte, 64<<10), maxLine)
	n, first := 0, 0
	var open []byte // an object over several lines, as tasks show prints it
	for in.Scan() && len(r.problems) < maxSaid {
		n++
		text := bytes.TrimSpace(in.Bytes())
		if open == nil && string(text) == "{" {
			first = n
		}
		if first > 0 {
			open = append(append(open, in.Bytes()...), '\n')
			if string(in.Bytes()) == "}" || len(open) > maxLine {
				r.add(fmt.Sprintf("%s:%d", r.name, first), open)
				first, open = 0, nil
			}
		} else if len(text) > 0 {
			r.add(fmt.Sprintf("%s:%d", r.name, n), text)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if open != nil {
		r.add(fmt.Sprintf("%s:%d", r.name, first), open)
	}
	if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
		r.problem(fmt.Sprintf("%s:%d", r.name, n+1), "the line is longer than %d MB", maxLine>>20)
	} else if err != nil {
		return fmt.Errorf("reading %s: %w", r.name, err)
	}
	return nil
}

func (r *reader) parquet(ctx context.Context) error {
	n := 0
	for row, err := range formats.Records(r.name) {
		if err != nil {
			return err
		}
		n++
		where := fmt.Sprintf("%s: row %d", r.name, n)
		text, err := json.Marshal(row)
		if err != nil {
			r.problem(where, "%v", err)
		} else {
			r.add(where, text)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(r.problems) >= maxSaid {
			break
		}
	}
	return nil
}

func (r *reader) problem(where, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...)))
}

// add takes one line.
func (r *reader) add(where string, text []byte) {
	l, err := decode(text)
	if err != nil {
		r.problem(where, "%v", err)
		return
	}
	given := l.ID
	before := len(r.problems)
	for _, p := range Problems(l.Task) {
		r.problem(where, "%s", p.Text)
	}
	if l.Schema != "" && l.Schema != Schema {
		r.problem(where, "schema %.40q: want %s, or leave it out", l.Schema, Schema)
	}
	if l.RepoTree == "" {
		r.problem(where, "repo_tree is missing: name the directory or archive of the repository")
	}
	if other := r.seen[l.InstanceID]; other != "" {
		r.problem(where, "instance_id %q stands already at %s", l.InstanceID, other)
	}
	r.seen[l.InstanceID] = where
	if len(r.entries) >= maxTasks {
		r.problem(where, "the file holds more than %d tasks: split it", maxTasks)
	}
	if len(r.problems) > before {
		return
	}
	e := &Entry{Task: Complete(l.Task, "file"), RepoTree: l.RepoTree, where: where, trees: r.trees}
	if e.Task.TreeSHA256 == "" {
		t, err := e.Tree()
		if err != nil {
			r.problems = append(r.problems, err)
			return
		}
		e.Task.TreeSHA256 = t.SHA256()
		e.Task.ID = e.Task.ComputeID()
	}
	if given != "" && given != e.Task.ID {
		r.problem(where, "id %.40q is not that of this content (%s): leave it out, or write the task as it was", given, e.Task.ID)
		return
	}
	r.entries = append(r.entries, e)
}

// decode reads one JSON object; keys that no task has are errors.
func decode(text []byte) (line, error) {
	var l line
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return l, fmt.Errorf("%s holds a %s", cmp.Or(strings.TrimPrefix(e.Field, "Task."), "the line"), e.Value)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return l, errors.New("the JSON object is cut off: one task per line")
		}
		return l, fmt.Errorf("not a task: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return l, errors.New("something follows the JSON object: one task per line")
	}
	return l, nil
}
