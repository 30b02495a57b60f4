package taskfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// Reverse returns the unified diff that undoes another one.
func Reverse(patch []byte) ([]byte, error) {
	files, err := parsePatch(patch)
	if err != nil {
		return nil, fmt.Errorf("not a unified diff: %w", err)
	}
	var out strings.Builder
	for _, f := range files {
		if f.IsBinary {
			return nil, errors.New("the diff of a binary file cannot be reversed")
		}
		f.OldName, f.NewName = f.NewName, f.OldName
		f.OldMode, f.NewMode = f.NewMode, f.OldMode
		f.OldOIDPrefix, f.NewOIDPrefix = f.NewOIDPrefix, f.OldOIDPrefix
		f.IsNew, f.IsDelete = f.IsDelete, f.IsNew
		for _, fragment := range f.TextFragments {
			reverse(fragment)
		}
		out.WriteString(f.String())
	}
	return []byte(out.String()), nil
}

// reverse reverses a fragment. It keeps deleted lines before added ones within each change.
func reverse(f *gitdiff.TextFragment) {
	f.OldPosition, f.NewPosition = f.NewPosition, f.OldPosition
	f.OldLines, f.NewLines = f.NewLines, f.OldLines
	f.LinesAdded, f.LinesDeleted = f.LinesDeleted, f.LinesAdded
	var lines, added []gitdiff.Line
	for _, l := range f.Lines {
		switch l.Op {
		case gitdiff.OpDelete:
			added = append(added, gitdiff.Line{Op: gitdiff.OpAdd, Line: l.Line})
		case gitdiff.OpAdd:
			lines = append(lines, gitdiff.Line{Op: gitdiff.OpDelete, Line: l.Line})
		default:
			lines, added = append(append(lines, added...), l), nil
		}
	}
	f.Lines = append(lines, added...)
}
