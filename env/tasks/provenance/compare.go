package provenance

import (
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/provenance/overlap"
)

// Tests of contamination by the hashes of a benchmark's tasks. TestInstance and TestRepo need only names.
const (
	TestCommit        = "commit"            // a task of the benchmark has the same base commit or pull request
	TestStatement     = "statement_13gram"  // a task of the benchmark shares most runs of 13 words in the statement
	TestStatementNear = "statement_minhash" // a task of the benchmark has nearly the same statement
	TestPatch         = "patch_13gram"      // like TestStatement, for the lines that a patch changes
	TestPatchNear     = "patch_minhash"     // like TestStatementNear, for the lines that a patch changes
)

// Tests lists all tests of contamination, strongest first.
var Tests = []string{TestInstance, TestCommit, TestRepo, TestStatement, TestStatementNear, TestPatch, TestPatchNear}

// Kinds of texts.
const (
	Statements = iota
	Patches
)

// Finding says that something in a task, or in an attempt at it, comes from a benchmark.
type Finding struct {
	Benchmark string
	Test      string
	Original  string  // the matching instance, repository, commit or pull request of the benchmark
	Share     float64 // similarity of texts, from 0 to 1; 0 for tests of names
}

// Names are the names of a task.
type Names struct {
	Instance   string
	Repo       string // as Upstream returns it; "" if unknown
	BaseCommit string
}

// Comparable reports whether the names are sufficient for a test.
func (n Names) Comparable(test string) bool {
	switch test {
	case TestRepo:
		return n.hasHostedRepo()
	case TestCommit:
		return fullCommit.MatchString(n.BaseCommit) || requestOf(n.Instance) != ""
	}
	return true
}

// hasHostedRepo reports whether the repository's name is valid on every machine.
func (n Names) hasHostedRepo() bool { return n.Repo != "" && !strings.HasPrefix(n.Repo, "local/") }

// Names returns the findings of the tests of names. An id alone is a finding only if it names a merged pull request.
// Any other id may occur in several datasets, so the repository must also be the same.
func (c *Comparison) Names(n Names) (out []Finding) {
	number := requestOf(n.Instance)
	for _, k := range c.Benchmarks {
		repo, found := k.ids[n.Instance]
		if found && (number != "" || repo == n.Repo) {
			out = append(out, Finding{k.Name, TestInstance, n.Instance, 0})
		}
		switch {
		case fullCommit.MatchString(n.BaseCommit) && k.commits[n.BaseCommit]:
			out = append(out, Finding{k.Name, TestCommit, n.BaseCommit, 0})
		case number != "" && k.requests[number]:
			out = append(out, Finding{k.Name, TestCommit, number, 0})
		}
		if n.hasHostedRepo() && k.repos[n.Repo] {
			out = append(out, Finding{k.Name, TestRepo, n.Repo, 0})
		}
	}
	return out
}

// Text compares a statement, or the changed lines of a patch, with those of the benchmarks. kind is Statements or
// Patches. The result includes findings with a share below Bound.
func (c *Comparison) Text(kind int, p overlap.TextHashes) (out []Finding) {
	tests := [2][2]string{{TestStatement, TestStatementNear}, {TestPatch, TestPatchNear}}[kind]
	for _, k := range c.Benchmarks {
		grams, near := k.texts[kind].Find(p)
		if grams.Name != "" {
			out = append(out, Finding{k.Name, tests[0], grams.Name, grams.Share})
		}
		if near.Name != "" {
			out = append(out, Finding{k.Name, tests[1], near.Name, near.Share})
		}
	}
	return out
}

// Bound returns the smallest share with which a finding of a test counts, or 0 for tests of names.
func Bound(test string) float64 {
	switch test {
	case TestStatement, TestPatch:
		return overlap.GramShare
	case TestStatementNear, TestPatchNear:
		return overlap.NearShare
	}
	return 0
}
