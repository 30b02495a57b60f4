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

// minIdentifyingStatements is the least number of statements of a function that identifies a
// repository. Shorter functions may be equal by coincidence.
const minIdentifyingStatements = 3

// FunctionHasher computes the fingerprint of repositories: the hashes of their functions. It
// parses equal files only once. It is not safe for concurrent use.
type FunctionHasher struct {
	Store  *workspace.Store
	Driver env.Driver
	Spec   env.SandboxSpec

	seen map[string][]string // hash of a file -> hashes of its functions
}

// Functions returns the hashes of a repository's functions, as in provenance.RepoHashes. It
// computes them in a new sandbox. unparsed is the number of files, not seen in earlier calls,
// that the Python of the sandbox cannot parse.
func (p *FunctionHasher) Functions(ctx context.Context, repo env.Tree) (hashes []string, unparsed int, err error) {
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
			if f.Statements >= minIdentifyingStatements {
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

// checkBenchmarks returns a RepoError if a repository's functions show that it is a copy of a
// benchmark's repository.
func (w *worker) checkBenchmarks(ctx context.Context, s *repoState) error {
	if w.cfg.Benchmarks == nil {
		return nil
	}
	p := FunctionHasher{Store: w.cfg.Store, Driver: s.driver, Spec: s.spec}
	hashes, _, err := p.Functions(ctx, s.repo.Tree)
	if err != nil {
		return err
	}
	if repo, list, shared := w.cfg.Benchmarks.CopiedFrom(hashes); repo != "" {
		return &RepoError{Kind: ErrBenchmark, Remedy: "use another repository",
			Detail: fmt.Sprintf("%d of its %d functions are in %s, which is in %s", shared, len(hashes), repo, list)}
	}
	return nil
}

// FixedRepo is a healthy repository with the patch that introduces a bug, or else the
// patch that fixed one. Without a patch, FixedFunctions finds no functions in it.
type FixedRepo struct {
	Tree      *workspace.Tree
	Bug, Gold string
}

// lines returns the lines of the healthy files that the bug concerns.
func (m FixedRepo) lines() map[string][]int {
	if m.Bug != "" {
		before, _ := changedLines(m.Bug)
		return before
	}
	_, after := changedLines(m.Gold)
	return after
}

// FixedFunctions returns, for each repository, the hashes of the functions that the bug
// concerns, in their fixed form. unparsed is as for FunctionHasher.Functions.
func FixedFunctions(ctx context.Context, d env.Driver, spec env.SandboxSpec, list []FixedRepo) (hashes [][]string, unparsed int, err error) {
	texts := map[string][]byte{} // by content, so that each is parsed once
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
				continue // the patch removed the file
			}
			for _, f := range outlines[string(text)] {
				within := func(n int) bool { return f.Line <= n && n <= f.EndLine }
				if f.Statements >= minIdentifyingStatements && slices.ContainsFunc(lines, within) {
					found = append(found, f.Before)
				}
			}
		}
		slices.Sort(found)
		hashes = append(hashes, slices.Compact(found))
	}
	return hashes, len(skipped), nil
}
