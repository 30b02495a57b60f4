package provenance

import (
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/provenance/overlap"
)

// Tests that compare with the prints of a benchmark's tasks. TestInstance and TestRepo compare names.
const (
	TestCommit        = "commit"            // one of its tasks has the same base commit or pull request
	TestStatement     = "statement_13gram"  // one of its tasks has most of the statement's runs of 13 words
	TestStatementNear = "statement_minhash" // one of its tasks has nearly the same statement
	TestPatch         = "patch_13gram"      // as TestStatement, for the changes of a patch
	TestPatchNear     = "patch_minhash"     // as TestStatementNear
)

// Tests lists all tests, from the strongest to the weakest.
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
	Of        string  // the instance, repository, commit or request of the benchmark
	Share     float64 // of texts: similarity, 0 to 1
}

// Names are the names of a task.
type Names struct {
	Instance   string
	Repo       string // as Upstream names it; "" if unknown
	BaseCommit string
}

// Comparable reports whether a test of names is possible.
func (n Names) Comparable(test string) bool {
	switch test {
	case TestRepo:
		return n.hosted()
	case TestCommit:
		return fullCommit.MatchString(n.BaseCommit) || requestOf(n.Instance) != ""
	}
	return true
}

// hosted reports whether the repository's name has the same meaning everywhere.
func (n Names) hosted() bool { return n.Repo != "" && !strings.HasPrefix(n.Repo, "local/") }

// Names makes the tests that need no text. An id by itself counts only if it names a merged pull
// request. Any other id may occur in several datasets, so the repository must be the same.
func (c *Comparison) Names(n Names) (out []Finding) {
	number := requestOf(n.Instance)
	for _, k := range c.Benchmarks {
		repo, there := k.ids[n.Instance]
		if there && (number != "" || repo == n.Repo) {
			out = append(out, Finding{k.Name, TestInstance, n.Instance, 0})
		}
		switch {
		case fullCommit.MatchString(n.BaseCommit) && k.commits[n.BaseCommit]:
			out = append(out, Finding{k.Name, TestCommit, n.BaseCommit, 0})
		case number != "" && k.requests[number]:
			out = append(out, Finding{k.Name, TestCommit, number, 0})
		}
		if n.hosted() && k.repos[n.Repo] {
			out = append(out, Finding{k.Name, TestRepo, n.Repo, 0})
		}
	}
	return out
}

// Text compares a text, or the changes of a patch, with those of the benchmarks. It also returns
// findings below their bounds.
func (c *Comparison) Text(kind int, p overlap.Print) (out []Finding) {
	tests := [2][2]string{{TestStatement, TestStatementNear}, {TestPatch, TestPatchNear}}[kind]
	for _, k := range c.Benchmarks {
		grams, near := k.texts[kind].Find(p)
		if grams.Of != "" {
			out = append(out, Finding{k.Name, tests[0], grams.Of, grams.Share})
		}
		if near.Of != "" {
			out = append(out, Finding{k.Name, tests[1], near.Of, near.Share})
		}
	}
	return out
}

// Bound is the least share with which a finding of a test counts; 0 for names.
func Bound(test string) float64 {
	switch test {
	case TestStatement, TestPatch:
		return overlap.GramShare
	case TestStatementNear, TestPatchNear:
		return overlap.NearShare
	}
	return 0
}
