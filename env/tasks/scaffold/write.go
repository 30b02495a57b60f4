package scaffold

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// Names of the files and directories in a task directory.
const (
	taskName  = "task.yaml"
	repoName  = "repo"
	patchName = "gold.patch"
)

// ErrNotEmpty means that the directory for the task already contains files.
var ErrNotEmpty = errors.New("the directory exists and is not empty")

// CheckEmpty returns an error that wraps ErrNotEmpty if dir already contains files, and nil if a task can be written
// to it.
func CheckEmpty(dir string) error {
	list, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("reading the output directory: %w", err)
	case len(list) > 0:
		return fmt.Errorf("%s: %w: name another one with -o, or remove it", dir, ErrNotEmpty)
	}
	return nil
}

// Write writes a task directory. comments maps keys of task.yaml to comments that say where their values come from;
// the comment for "" is written at the start of the file.
func Write(dir string, t schemas.Task, tree *workspace.Tree, comments map[string]string) error {
	if err := CheckEmpty(dir); err != nil {
		return err
	}
	text, err := taskYAML(t, comments)
	if err != nil {
		return err
	}
	repo := filepath.Join(dir, repoName)
	if err := os.MkdirAll(repo, 0o755); err != nil {
		return fmt.Errorf("making the task's directory: %w", err)
	}
	if err := writeTree(repo, tree); err != nil {
		return fmt.Errorf("writing the repository: %w", err)
	}
	if t.GoldPatch != "" {
		if err := os.WriteFile(filepath.Join(dir, patchName), []byte(t.GoldPatch), 0o644); err != nil {
			return fmt.Errorf("writing the gold patch: %w", err)
		}
	}
	// task.yaml is written last: a directory without it is not a task.
	if err := os.WriteFile(filepath.Join(dir, taskName), text, 0o644); err != nil {
		return fmt.Errorf("writing the task: %w", err)
	}
	return nil
}

// writeTree writes the files of a tree below dir. It never follows a link out of dir.
func writeTree(dir string, tree *workspace.Tree) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	r, w := io.Pipe()
	go func() { w.CloseWithError(tree.WriteTar(w)) }()
	defer r.Close()
	in := tar.NewReader(r)
	for {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.FromSlash(head.Name)
		switch head.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(filepath.Clean(name), 0o755)
		case tar.TypeSymlink:
			err = root.Symlink(head.Linkname, name)
		default:
			err = writeFile(root, name, in, os.FileMode(head.Mode)&0o777)
		}
		if err != nil {
			return err
		}
	}
}

func writeFile(root *os.Root, name string, in io.Reader, mode os.FileMode) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}

// taskYAML returns task.yaml with the fields of a task that have a value.
func taskYAML(t schemas.Task, comments map[string]string) ([]byte, error) {
	doc := &yaml.Node{Kind: yaml.MappingNode, HeadComment: comments[""]}
	tests := &yaml.Node{Kind: yaml.MappingNode}
	add := func(to *yaml.Node, key, name string, value any) error {
		var node yaml.Node
		if err := node.Encode(value); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if node.IsZero() || node.Value == "" && len(node.Content) == 0 {
			return nil
		}
		to.Content = append(to.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key, HeadComment: comments[name]}, &node)
		return nil
	}
	date := ""
	if !t.CreatedAt.IsZero() {
		date = t.CreatedAt.UTC().Format(time.DateOnly)
	}
	err := errors.Join(
		add(doc, "instance_id", "instance_id", t.InstanceID), add(doc, "instructions", "instructions", t.Instructions),
		add(doc, "python", "python", t.Python), add(doc, "setup", "setup", t.Setup),
		add(doc, "entrypoint", "entrypoint", t.Entrypoint),
		add(doc, "repo", "repo", t.Repo), add(doc, "base_commit", "base_commit", t.BaseCommit),
		add(doc, "license", "license", t.License), add(doc, "bug_kind", "bug_kind", t.BugKind),
		add(tests, "method", "tests.method", t.Tests.Method),
		add(tests, "fail_to_pass", "tests.fail_to_pass", t.Tests.FailToPass),
		add(tests, "pass_to_pass", "tests.pass_to_pass", t.Tests.PassToPass),
		add(tests, "files", "tests.files", t.Tests.Files),
	)
	if date != "" {
		doc.Content = append(doc.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "created_at", HeadComment: comments["created_at"]},
			&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!timestamp", Value: date})
	}
	if len(tests.Content) > 0 {
		doc.Content = append(doc.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "tests"}, tests)
	}
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(doc), enc.Close()); err != nil {
		return nil, fmt.Errorf("writing task.yaml: %w", err)
	}
	return out.Bytes(), nil
}
