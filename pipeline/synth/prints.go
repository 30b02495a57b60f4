package synth

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/mutate"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// substance is how many statements a function has by which code is known again:
// shorter ones are written alike by people who never met.
const substance = 3

// Printer knows repositories by their functions. It reads equal files once. One
// goroutine uses it.
type Printer struct {
	Store  *workspace.Store
	Driver env.Driver
	Spec   env.SandboxSpec

	seen map[string][]string // text -> hashes
}

// Functions are the hashes of a repository's program, as provenance.Prints has
// them, found in a sandbox of its own; unread counts files that are no Python of
// its interpreter.
func (p *Printer) Functions(ctx context.Context, repo env.Tree) (hashes []string, unread int, err error) {
	base, err := p.Store.Base(ctx, repo)
	if err != nil {
		return nil, 0, err
	}
	files, err := p.Store.Files(ctx, base)
	if err != nil {
		return nil, 0, err
	}
	fresh, all := map[string][]byte{}, []string{}
	for _, f := range files {
		if !isProgram(f.Path) || f.Mode == workspace.ModeSymlink {
			continue
		}
		text, _, err := p.Store.ReadFile(ctx, base, f.Path)
		if err != nil {
			return nil, 0, err
		}
		key := schemas.HashBytes(text)
		if all = append(all, key); p.seen[key] == nil {
			fresh[key] = text
		}
	}
	if p.seen == nil {
		p.seen = map[string][]string{}
	}
	outlines, skipped, err := mutate.Outlines(ctx, p.Driver, p.Spec, fresh)
	if err != nil {
		return nil, 0, err
	}
	for key := range fresh {
		p.seen[key] = []string{}
		for _, f := range outlines[key] {
			if f.Statements >= substance {
				p.seen[key] = append(p.seen[key], f.Before)
			}
		}
	}
	for _, key := range all {
		hashes = append(hashes, p.seen[key]...)
	}
	slices.Sort(hashes)
	return slices.Compact(hashes), len(skipped), nil
}

// copied refuses a repository that is one of a benchmark under another name.
func (w *worker) copied(ctx context.Context, s *state) error {
	if w.cfg.Benchmarks == nil {
		return nil
	}
	p := Printer{Store: w.cfg.Store, Driver: s.driver, Spec: s.spec}
	hashes, _, err := p.Functions(ctx, s.repo.Tree)
	if err != nil {
		return err
	}
	if repo, list, shared := w.cfg.Benchmarks.Copy(hashes); repo != "" {
		return &RepoError{Kind: ErrBenchmark, Remedy: "take another repository",
			Detail: fmt.Sprintf("%d of its %d functions stand in %s, which is in %s", shared, len(hashes), repo, list)}
	}
	return nil
}

// Mended is a healthy repository with the patch that would take it to the bug, or
// the one that mended it; without either no function is compared.
type Mended struct {
	Tree      *workspace.Tree
	Bug, Gold string
}

// lines are those of the healthy files that the bug is about.
func (m Mended) lines() map[string][]int {
	if m.Bug != "" {
		before, _ := linesOf(m.Bug)
		return before
	}
	_, after := linesOf(m.Gold)
	return after
}

// MendedFunctions lists, of each, the hashes of the functions that its bug is
// about, as they are without the bug; unread as for Printer.
func MendedFunctions(ctx context.Context, d env.Driver, spec env.SandboxSpec, list []Mended) (hashes [][]string, unread int, err error) {
	texts := map[string][]byte{} // by content, so that each is read once
	for _, m := range list {
		for file := range m.lines() {
			if text, _, link, err := m.Tree.File(file); err == nil && !link && isProgram(file) {
				texts[string(text)] = text
			}
		}
	}
	outlines, skipped, err := mutate.Outlines(ctx, d, spec, texts)
	if err != nil {
		return nil, 0, err
	}
	for _, m := range list {
		var found []string
		for file, lines := range m.lines() {
			text, _, _, err := m.Tree.File(file)
			if err != nil {
				continue // the patch took it away
			}
			for _, f := range outlines[string(text)] {
				within := func(n int) bool { return f.Line <= n && n <= f.EndLine }
				if f.Statements >= substance && slices.ContainsFunc(lines, within) {
					found = append(found, f.Before)
				}
			}
		}
		slices.Sort(found)
		hashes = append(hashes, slices.Compact(found))
	}
	return hashes, len(skipped), nil
}
