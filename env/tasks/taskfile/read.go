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

// Limits of a task file.
const (
	maxLine     = 64 << 20 // bytes
	maxTasks    = 1 << 20
	maxProblems = 20 // problems after which reading stops
)

// line is a task with the path of its repository.
type line struct {
	schemas.Task
	RepoTree string `json:"repo_tree"`
	Schema   string `json:"schema,omitempty"` // set in the output of "tasks show"
}

// Schema is the value of the field schema in the output of "tasks show".
const Schema = "tracesmith.task/1"

// Entry is a task in a file. It is safe for concurrent use.
type Entry struct {
	Task     schemas.Task // as Complete returns it
	RepoTree string       // path of the repository, relative to the file

	where string
	trees *treeCache
	once  sync.Once
	tree  *workspace.Tree
	err   error
}

// Tree returns the repository after the task's bug patch. It returns an error if the hash of the repository is not
// Task.TreeSHA256. The first call reads the repository.
func (e *Entry) Tree() (*workspace.Tree, error) {
	e.once.Do(func() {
		if e.tree, e.err = e.makeTree(); e.err != nil {
			e.err = fmt.Errorf("%s: task %s: %w", e.where, e.Task.InstanceID, e.err)
		}
	})
	return e.tree, e.err
}

// Repository returns the repository before the bug patch.
func (e *Entry) Repository() (*workspace.Tree, error) {
	t, err := e.trees.open(e.RepoTree)
	if err != nil {
		return nil, fmt.Errorf("%s: task %s: %w", e.where, e.Task.InstanceID, err)
	}
	return t, nil
}

func (e *Entry) makeTree() (*workspace.Tree, error) {
	base, err := e.trees.open(e.RepoTree)
	if err != nil {
		return nil, err
	}
	t, err := Apply(base, []byte(e.Task.BugPatch))
	if err != nil {
		return nil, fmt.Errorf("bug_patch: %w", err)
	}
	if want := e.Task.TreeSHA256; want != "" && t.SHA256() != want {
		return nil, fmt.Errorf("%s with the bug patch has tree_sha256 %s, but the task has %s: the repository was changed, or is another one",
			e.RepoTree, t.SHA256(), want)
	}
	return t, nil
}

// Read reads a task file: Parquet if the name ends in .parquet, else JSONL. The error lists all invalid lines, as
// "file:line: problem". Read sets TreeSHA256 of a task that lacks it to the hash of its present repository. cache is
// the directory for decompressed repositories; "" means DefaultCache.
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
		return nil, fmt.Errorf("%s contains no task: want one JSON object per line", name)
	}
	return r.entries, errors.Join(r.problems...)
}

type reader struct {
	trees    *treeCache
	name     string
	seen     map[string]string // instance id -> file and line
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
		return errors.Join(err, fmt.Errorf("%s is not a regular file: name a task file (.jsonl or .parquet)", r.name))
	}
	in := bufio.NewScanner(f)
	in.Buffer(make([]byte, 64<<10), maxLine)
	n, first := 0, 0  // the current line; the first line of object
	var object []byte // an object over several lines, as "tasks show" prints it
	for in.Scan() && len(r.problems) < maxProblems {
		n++
		text := bytes.TrimSpace(in.Bytes())
		if object == nil && string(text) == "{" {
			first = n
		}
		if first > 0 {
			object = append(append(object, in.Bytes()...), '\n')
			if string(in.Bytes()) == "}" || len(object) > maxLine {
				r.add(fmt.Sprintf("%s:%d", r.name, first), object)
				first, object = 0, nil
			}
		} else if len(text) > 0 {
			r.add(fmt.Sprintf("%s:%d", r.name, n), text)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if object != nil {
		r.add(fmt.Sprintf("%s:%d", r.name, first), object)
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
		if len(r.problems) >= maxProblems {
			break
		}
	}
	return nil
}

func (r *reader) problem(where, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...)))
}

// add adds the task in a JSON object, or its problems. where says where the object is, for messages.
func (r *reader) add(where string, text []byte) {
	l, err := decode(text)
	if err != nil {
		r.problem(where, "%v", err)
		return
	}
	givenID := l.ID
	before := len(r.problems)
	for _, p := range Problems(l.Task) {
		r.problem(where, "%s", p.Text)
	}
	if l.Schema != "" && l.Schema != Schema {
		r.problem(where, "schema %.40q: want %s, or omit it", l.Schema, Schema)
	}
	if l.RepoTree == "" {
		r.problem(where, "repo_tree is missing (the output of tasks show --json does not contain the repository): add the path of its directory or archive, or write task and repository with tracesmith tasks show TASK --gold -o FILE")
	} else if _, err := r.trees.path(l.RepoTree); err != nil {
		r.problem(where, "%v", err)
	}
	if other := r.seen[l.InstanceID]; other != "" {
		r.problem(where, "instance_id %q is already used at %s", l.InstanceID, other)
	}
	r.seen[l.InstanceID] = where
	if len(r.entries) >= maxTasks {
		r.problem(where, "the file contains more than %d tasks: split it", maxTasks)
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
	if givenID != "" && givenID != e.Task.ID {
		r.problem(where, "id %.40q does not match the content of the task (%s): omit it, or undo the change", givenID, e.Task.ID)
		return
	}
	r.entries = append(r.entries, e)
}

// decode decodes one JSON object. Unknown keys are errors.
func decode(text []byte) (line, error) {
	var l line
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return l, fmt.Errorf("%s has the wrong type %s", cmp.Or(strings.TrimPrefix(e.Field, "Task."), "the line"), e.Value)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return l, errors.New("the JSON object is incomplete: write one task per line")
		}
		return l, fmt.Errorf("not a task: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return l, errors.New("unexpected text after the JSON object: write one task per line")
	}
	return l, nil
}
