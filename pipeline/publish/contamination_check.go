package publish

import (
	"crypto/sha256"
	"strings"
	"sync"

	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/env/tasks/provenance/overlap"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// contaminationCheck compares episodes with benchmarks and adds up the results. It
// keeps no text: a bit mask per task and, if benchmarks have texts, a hash per text.
// compare is safe for concurrent use, addEpisode is not.
type contaminationCheck struct {
	benchmarks  *provenance.Comparison // nil: only the built-in lists of repositories
	episodes    int
	tasks       map[taskKey]uint8 // bit i: provenance.Tests[i] was possible
	compared    [8]int            // number of episodes by test
	byTest      map[benchmarkTest]*matches
	byBenchmark map[string]*matches // of any test

	mu           sync.Mutex
	texts        map[textKey]textComparison
	highestBelow map[benchmarkTest]float64 // the highest share below the bound
}

type (
	taskKey       struct{ source, instance string }
	benchmarkTest struct{ benchmark, test string }
	// matchKey is a task and what it matches (provenance.Finding.Original).
	matchKey struct {
		task taskKey
		of   string
	}
	// matches are the episodes and tasks that match a benchmark.
	matches struct {
		episodes int
		tasks    map[taskKey]bool
		matches  map[matchKey]*match
	}
	match struct {
		share    float64 // the highest of its episodes
		episodes int
		ids      []string // IDs of the episodes, if their patches match
	}
	textKey struct {
		kind int
		sha  [sha256.Size]byte
	}
	// textComparison is the result of comparing one text.
	textComparison struct {
		comparable [2]bool // whether the text is long enough to compare: by runs of 13 words, by signature
		findings   []provenance.Finding
	}
)

func newContaminationCheck(benchmarks *provenance.Comparison) *contaminationCheck {
	return &contaminationCheck{
		benchmarks: benchmarks, tasks: map[taskKey]uint8{}, byTest: map[benchmarkTest]*matches{}, byBenchmark: map[string]*matches{},
		texts: map[textKey]textComparison{}, highestBelow: map[benchmarkTest]float64{},
	}
}

// comparison is the result of comparing one episode.
type comparison struct {
	testable uint8 // bit i: provenance.Tests[i] was possible
	findings []provenance.Finding
}

// compare compares one episode with the benchmarks.
func (c *contaminationCheck) compare(s sinks.Staged) (out comparison) {
	e := s.Episode
	names := provenance.Names{Instance: e.InstanceID, BaseCommit: schemas.Value(e.BaseCommit)}
	if e.Contamination != nil {
		names.Repo = e.Repo
	}
	testable := map[string]bool{provenance.TestInstance: true, provenance.TestRepo: names.Comparable(provenance.TestRepo)}
	if c.benchmarks != nil {
		out.findings = c.benchmarks.Names(names)
		testable[provenance.TestCommit] = names.Comparable(provenance.TestCommit)
		for kind, tests := range [][2]string{
			provenance.Statements: {provenance.TestStatement, provenance.TestStatementNear},
			provenance.Patches:    {provenance.TestPatch, provenance.TestPatchNear},
		} {
			result := c.compareText(kind, textOf(kind, s))
			testable[tests[0]], testable[tests[1]] = result.comparable[0], result.comparable[1]
			out.findings = append(out.findings, result.findings...)
		}
	}
	out.findings = append(out.findings, listedRepos(e)...)
	for i, test := range provenance.Tests {
		if testable[test] {
			out.testable |= 1 << i
		}
	}
	return out
}

// textOf returns the problem statement or the patch of an episode. A long patch is in a blob.
func textOf(kind int, s sinks.Staged) string {
	switch {
	case kind == provenance.Statements:
		return schemas.Value(s.Episode.ProblemStatement)
	case s.Episode.Patch != nil || s.Episode.PatchSHA256 == nil:
		return schemas.Value(s.Episode.Patch)
	}
	for _, b := range s.Blobs {
		if b.SHA256 == *s.Episode.PatchSHA256 {
			return b.Content
		}
	}
	return ""
}

// compareText compares a text with the benchmarks, and caches the result.
func (c *contaminationCheck) compareText(kind int, body string) textComparison {
	if body == "" {
		return textComparison{}
	}
	key := textKey{kind, sha256.Sum256([]byte(body))}
	c.mu.Lock()
	result, known := c.texts[key]
	c.mu.Unlock()
	if known {
		return result
	}
	if kind == provenance.Patches {
		body = overlap.Changed(body)
	}
	p := overlap.TextHashesOf(body)
	result = textComparison{comparable: [2]bool{len(p.Grams) >= overlap.MinRuns, p.Shingles >= overlap.MinRuns}}
	found := c.benchmarks.Text(kind, p)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range found {
		if key := (benchmarkTest{f.Benchmark, f.Test}); f.Share < provenance.Bound(f.Test) {
			c.highestBelow[key] = max(c.highestBelow[key], f.Share)
		} else {
			result.findings = append(result.findings, f)
		}
	}
	c.texts[key] = result
	return result
}

// listedRepos returns the findings in the column contamination, which come from the
// built-in lists of repositories and from the task source.
func listedRepos(e schemas.EpisodeRow) (out []provenance.Finding) {
	for _, entry := range e.Contamination {
		benchmark, test, _ := strings.Cut(entry, ":")
		of := e.InstanceID
		if test == provenance.TestRepo {
			of = e.Repo
		}
		out = append(out, provenance.Finding{Benchmark: benchmark, Test: test, Original: of})
	}
	return out
}

// addEpisode counts an episode and its findings.
func (c *contaminationCheck) addEpisode(e schemas.EpisodeRow, result comparison) {
	task := taskKey{e.TaskSource, e.InstanceID}
	c.episodes++
	c.tasks[task] |= result.testable
	for i := range provenance.Tests {
		if result.testable&(1<<i) != 0 {
			c.compared[i]++
		}
	}
	counted := map[benchmarkTest]bool{}
	for _, f := range result.findings {
		key := benchmarkTest{f.Benchmark, f.Test}
		if counted[key] { // the lists and the hashes can both find the same match
			continue
		}
		counted[key] = true
		found := matchesFor(c.byTest, key)
		found.addTask(task)
		m := found.matches[matchKey{task, f.Original}]
		if m == nil {
			m = &match{}
			found.matches[matchKey{task, f.Original}] = m
		}
		m.share, m.episodes = max(m.share, f.Share), m.episodes+1
		if f.Test == provenance.TestPatch || f.Test == provenance.TestPatchNear {
			m.ids = append(m.ids, e.EpisodeID)
		}
		if whole := (benchmarkTest{benchmark: f.Benchmark}); !counted[whole] {
			counted[whole] = true
			matchesFor(c.byBenchmark, f.Benchmark).addTask(task)
		}
	}
}

func matchesFor[K comparable](m map[K]*matches, key K) *matches {
	if m[key] == nil {
		m[key] = &matches{tasks: map[taskKey]bool{}, matches: map[matchKey]*match{}}
	}
	return m[key]
}

// addTask counts one more episode of a task.
func (c *matches) addTask(task taskKey) {
	c.episodes++
	c.tasks[task] = true
}
