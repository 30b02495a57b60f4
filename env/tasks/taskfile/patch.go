package taskfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/tracesmith/tracesmith/env/workspace"
)

// Apply returns the tree after a unified diff. The diff must match the files exactly; an error names the file that it
// does not match. Apply reads only the files that the diff names.
func Apply(t *workspace.Tree, patch []byte) (_ *workspace.Tree, err error) {
	if len(patch) == 0 {
		return t, nil
	}
	files, err := parsePatch(patch)
	if err != nil {
		return nil, fmt.Errorf("not a unified diff: %w", err)
	}
	if len(files) == 0 {
		return nil, errors.New("the patch changes no file")
	}
	var changes []workspace.FileEdit
	for _, f := range files {
		c, err := applyFile(t, f)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c...)
	}
	return t.Edit(changes)
}

// applyFile returns the edits that the part of a diff for one file makes.
func applyFile(t *workspace.Tree, f *gitdiff.File) (changes []workspace.FileEdit, err error) {
	name := f.OldName // for errors: the file that the diff must match
	if f.IsNew {
		name = f.NewName
	}
	defer func() {
		if p := recover(); p != nil { // gitdiff panics on some malformed diffs
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			err = fmt.Errorf("the patch does not apply to %s: %w", name, err)
		}
	}()
	var old []byte
	var exec, link bool
	if !f.IsNew {
		if old, exec, link, err = t.File(f.OldName); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = fs.ErrNotExist
			}
			return nil, err
		}
	} else if _, _, _, err := t.File(name); err == nil {
		return nil, fs.ErrExist
	}
	var out bytes.Buffer
	if f.IsBinary && f.BinaryFragment == nil {
		return nil, errors.New("the diff of a binary file contains no data")
	}
	if err := gitdiff.Apply(&out, bytes.NewReader(old), f); err != nil {
		return nil, err
	}
	if f.NewMode != 0 {
		exec, link = f.NewMode&0o111 != 0, f.NewMode&os.ModeSymlink != 0 || f.NewMode&0o170000 == 0o120000
	}
	if f.IsDelete || f.IsRename {
		changes = append(changes, workspace.FileEdit{Path: f.OldName, Delete: true})
	}
	if !f.IsDelete {
		changes = append(changes, workspace.FileEdit{Path: f.NewName, Exec: exec, Link: link, Data: out.Bytes()})
	}
	return changes, nil
}
