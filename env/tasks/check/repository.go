package check

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/leak"
	"github.com/tracesmith/tracesmith/env/tasks/lint"
	"github.com/tracesmith/tracesmith/schemas"
)

// maxFile is the number of bytes that are searched at the start of each file of the repository.
const maxFile = 32 << 20

// searchRepository searches the files of the repository for the fix.
func (c *checker) searchRepository(ctx context.Context, workdir string, s secrets) error {
	found, err := leak.Search(s.changes, func(each func(name string, data []byte) error) error {
		return c.eachFile(ctx, func(name string, data []byte, target string) error {
			return each(name, append(data, target...)) // the content of a symlink is its target
		})
	})
	for _, f := range found {
		c.rep.Leaks = append(c.rep.Leaks, Leak{Place: clip(path.Join(workdir, f.Path)), Line: f.Line, Token: clip(f.Excerpt), Kind: f.Kind, Form: clip(f.Form), From: FromTask})
	}
	return err
}

// eachFile calls each with every file of the repository: with its first maxFile bytes or, if it is a symlink, with its
// target.
func (c *checker) eachFile(ctx context.Context, each func(name string, data []byte, target string) error) error {
	return env.Stream(
		func(w io.Writer) error { return c.Store.Export(ctx, c.base, w) },
		func(r io.Reader) error {
			for in := tar.NewReader(r); ; {
				head, err := in.Next()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				if head.Typeflag == tar.TypeDir {
					continue
				}
				data, err := io.ReadAll(io.LimitReader(in, maxFile))
				if err != nil {
					return err
				}
				if err := each(head.Name, data, head.Linkname); err != nil {
					return err
				}
			}
		},
	)
}

// lintText reports what the instructions reveal about the place of the bug. In a published text this is only a note. A
// generated text must not reveal anything; other texts must not name the file, the function or the line.
func (c *checker) lintText(t schemas.Task, s secrets) {
	names := lint.Names{
		Words: lint.ChangedWords([]byte(c.task.GoldPatch)), Plain: "pytest tests fail pass expected instead returns", Paths: s.Visible,
		Output: strings.Join([]string{c.output, t.Entrypoint, t.DebugEntrypoint, strings.Join(c.listed(), "\n")}, "\n"),
	}
	lines := map[int]bool{}
	for _, change := range s.gold {
		names.Files = append(names.Files, change.Path)
		names.Functions = append(names.Functions, leak.ChangedFunctions(change)...)
		for line := range leak.ChangedLines(change) {
			lines[line] = true
		}
	}
	for _, f := range lint.Text(t.Instructions, names) {
		if (f.Kind == lint.Module || f.Kind == lint.Identifier) && !generated(t) && mayBeProse(f.Token) {
			continue // a word of a sentence, most likely
		}
		l := Leak{Place: textPlace, Token: clip(f.Token), Kind: f.Kind, From: FromTask}
		named := f.Kind == lint.File || f.Kind == lint.Function && !isShortName(f.Token) || f.Kind == lint.Line && lines[lint.LineNumber(f.Token)]
		if !published(t) && (generated(t) || named) {
			c.rep.Leaks = append(c.rep.Leaks, l)
		} else if len(c.rep.Quoted) < maxQuoted {
			c.rep.Quoted = append(c.rep.Quoted, l)
		}
	}
}

// generated reports whether the task was made by adding a bug to a repository.
func generated(t schemas.Task) bool { return t.Origin != nil && t.Origin.ParentTreeSHA256 != "" }

// isShortName reports whether a function's name is so short that it may mean something else in a text.
func isShortName(name string) bool { return len(name) < 4 }
