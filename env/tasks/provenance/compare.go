package provenance

import (
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/provenance/overlap"
)

// Tests that compare with prints of a benchmark's tasks (TestInstance and TestRepo
// are made of names alone, too).
const (
	TestCommit        = "commit"            // the base commit, or the number of the request, is that of one of its tasks
	TestStatement     = "statement_13gram"  // most runs of 13 words of a statement are those of one of its tasks
	TestStatementNear = "statement_minhash" // the statement is nearly that of one of its tasks
	TestPatch         = "patch_13gram"      // as TestStatement, for what a patch changes
	TestPatchNear     = "patch_minhash"     // as TestStatementNear
)

// Tests are all of them, from the surest to the weakest.
var Tests = []string{TestInstance, TestCommit, TestRepo, TestStatement, TestStatementNear, TestPatch, TestPatchNear}

// Kinds of texts.
const (
	Statements = iota
	Patches
)

// Finding is that something of a task, or of an attempt at it, is a benchmark's.
type Finding struct {
	Benchmark string
	Test      string
	Of        string  // the instance, repository, commit or request of the benchmark
	Share     float64 // of texts: how much they have in common, 0 to 1
}

// Names are what a task is called by.
type Names struct {
	Instance   string
	Repo       string // as Upstream names it; "" for one that nobody knows
	BaseCommit string
}

// Comparable tells which of the tests by names can be made.
func (n Names) Comparable(test string) bool {
	switch test {
	case TestRepo:
		return n.hosted()
	case TestCommit:
		return fullCommit.MatchString(n.BaseCommit) || requestOf(n.Instance) != ""
	}
	return true
}

// hosted tells that a repository's name means the same everywhere.
func (n Names) hosted() bool { return n.Repo != "" && !strings.HasPrefix(n.Repo, "local/") }

// Names makes the tests that need no text. An id alone counts where it has the form
// of those of merged requests; any other may be anybody's, and its repository must
// be the same.
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

// Text compares a text, or what a patch changes, with the benchmarks' own. Those
// below their bounds come back too.
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

// Bound is the share from which on a finding of a test counts; 0 for names.
func Bound(test string) float64 {
	switch test {
	case TestStatement, TestPatch:
		return overlap.GramShare
	case TestStatementNear, TestPatchNear:
		return overlap.NearShare
	}
	return 0
}
