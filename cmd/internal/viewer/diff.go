package viewer

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// patchView is a patch, as the template shows it.
type patchView struct {
	Title string
	Files []fileDiff
	Raw   string // set if the patch cannot be parsed
	None  string // shown in place of a patch
}

func newPatchView(title, patch, none string) patchView {
	files, raw := diffOf(patch)
	return patchView{title, files, raw, none}
}

// fileDiff is the change of one file by a patch.
type fileDiff struct {
	Name           string
	Note           string // such as "new file"
	Added, Deleted int64
	Hunks          []hunk
}

type hunk struct {
	Head string
	Runs []diffRun
}

// diffRun is a run of equal lines of a hunk, so that a long patch needs few elements.
type diffRun struct{ Class, Text string }

// maxPatch is the size up to which a patch is taken apart, in bytes.
const maxPatch = 1 << 20

// diffOf takes a patch apart. raw is set if that is not possible.
func diffOf(patch string) (files []fileDiff, raw string) {
	if strings.TrimSpace(patch) == "" {
		return nil, ""
	}
	parsed, _, err := gitdiff.Parse(strings.NewReader(patch))
	if err != nil || len(parsed) == 0 || len(patch) > maxPatch {
		return nil, visible(patch)
	}
	for _, f := range parsed {
		d := fileDiff{Name: visible(cmp.Or(f.NewName, f.OldName)), Note: noteOf(f)}
		for _, fragment := range f.TextFragments {
			d.Added += fragment.LinesAdded
			d.Deleted += fragment.LinesDeleted
			d.Hunks = append(d.Hunks, hunkOf(fragment))
		}
		files = append(files, d)
	}
	return files, ""
}

func noteOf(f *gitdiff.File) string {
	switch {
	case f.IsNew:
		return "new file"
	case f.IsDelete:
		return "deleted"
	case f.IsRename:
		return visible("renamed from " + f.OldName)
	case f.IsBinary:
		return "binary"
	case f.OldMode != 0 && f.NewMode != 0 && f.OldMode != f.NewMode:
		return fmt.Sprintf("mode %o → %o", f.OldMode, f.NewMode)
	}
	return ""
}

func hunkOf(f *gitdiff.TextFragment) hunk {
	h := hunk{Head: visible(strings.TrimSpace(fmt.Sprintf("@@ -%d,%d +%d,%d @@ %s", f.OldPosition, f.OldLines, f.NewPosition, f.NewLines, f.Comment)))}
	for _, line := range f.Lines {
		class := map[gitdiff.LineOp]string{gitdiff.OpAdd: "add", gitdiff.OpDelete: "del"}[line.Op]
		text := visible(line.Op.String() + line.Line)
		if line.NoEOL() {
			text += "\n\\ No newline at end of file\n"
		}
		if last := len(h.Runs) - 1; last >= 0 && h.Runs[last].Class == class {
			h.Runs[last].Text += text
			continue
		}
		h.Runs = append(h.Runs, diffRun{class, text})
	}
	return h
}
