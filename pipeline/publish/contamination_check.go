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
	with        *provenance.Comparison // nil: only the built-in lists of repositories
	episodes    int
	tasks       map[taskKey]uint8 // bit i: provenance.Tests[i] was possible
	compared    [8]int            // number of episodes by test
	byTest      map[benchmarkTest]*affected
	byBenchmark map[string]*affected // by benchmark

	mu    sync.Mutex
	texts map[textKey]textComparison
	below map[benchmarkTest]float64 // the highest share below the bound
}

type (
	taskKey       struct{ source, instance string }
	benchmarkTest struct{ benchmark, test string }
	matchKey      struct {
		task taskKey
		of   string
	}
	// affected are the episodes and tasks that match a benchmark.
	affected struct {
		episodes int
		tasks    map[taskKey]bool
		matches  map[matchKey]*match
	}
	match struct {
		share    float64 // the highest
		episodes int
		ids      []string // of the episodes, if their patches match
	}
	textKey struct {
		kind int
		sha  [sha256.Size]byte
	}
	// textComparison is the result of comparing one text.
	textComparison struct {
		comparable [2]bool // by runs of 13 words, by signature
		findings   []provenance.Finding
	}
)

func newContaminationCheck(with *provenance.Comparison) *contaminationCheck {
	return &contaminationCheck{
		with: with, tasks: map[taskKey]uint8{}, byTest: map[benchmarkTest]*affected{}, byBenchmark: map[string]*affected{},
		texts: map[textKey]textComparison{}, below: map[benchmarkTest]float64{},
	}
}

// comparison is the result of comparing one episode.
type comparison struct {
	testable uint8
	findings []provenance.Finding
}

// compare compares one episode with the benchmarks.
func (c *contaminationCheck) compare(s sinks.Staged) (out comparison) {
	e := s.Episode
	names := provenance.Names{Instance: e.InstanceID, BaseCommit: schemas.Value(e.BaseCommit)}
	if e.Contamination != nil {
		names.Repo = e.Repo
	}
	can := map[string]bool{provenance.TestInstance: true, provenance.TestRepo: names.Comparable(provenance.TestRepo)}
	if c.with != nil {
		out.findings = c.with.Names(names)
		can[provenance.TestCommit] = names.Comparable(provenance.TestCommit)
		for kind, tests := range [][2]string{
			provenance.Statements: {provenance.TestStatement, provenance.TestStatementNear},
			provenance.Patches:    {provenance.TestPatch, provenance.TestPatchNear},
		} {
			l := c.compareText(kind, textOf(kind, s))
			can[tests[0]], can[tests[1]] = l.comparable[0], l.comparable[1]
			out.findings = append(out.findings, l.findings...)
		}
	}
	out.findings = append(out.findings, listedRepos(e)...)
	for i, test := range provenance.Tests {
		if can[test] {
			out.testable |= 1 << i
		}
	}
	return out
}

// textOf returns the statement or the patch of an episode; a long patch is in a blob.
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

// compareText compares a text, and caches the result.
func (c *contaminationCheck) compareText(kind int, body string) textComparison {
	if body == "" {
		return textComparison{}
	}
	key := textKey{kind, sha256.Sum256([]byte(body))}
	c.mu.Lock()
	l, known := c.texts[key]
	c.mu.Unlock()
	if known {
		return l
	}
	if kind == provenance.Patches {
		body = overlap.Changed(body)
	}
	p := overlap.PrintOf(body)
	l = textComparison{comparable: [2]bool{len(p.Grams) >= overlap.Least, p.Shingles >= overlap.Least}}
	found := c.with.Text(kind, p)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range found {
		if key := (benchmarkTest{f.Benchmark, f.Test}); f.Share < provenance.Bound(f.Test) {
			c.below[key] = max(c.below[key], f.Share)
		} else {
			l.findings = append(l.findings, f)
		}
	}
	c.texts[key] = l
	return l
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
		out = append(out, provenance.Finding{Benchmark: benchmark, Test: test, Of: of})
	}
	return out
}

// addEpisode counts an episode and its findings.
func (c *contaminationCheck) addEpisode(e schemas.EpisodeRow, l comparison) {
	task := taskKey{e.TaskSource, e.InstanceID}
	c.episodes++
	c.tasks[task] |= l.testable
	for i := range provenance.Tests {
		if l.testable&(1<<i) != 0 {
			c.compared[i]++
		}
	}
	once := map[benchmarkTest]bool{}
	for _, f := range l.findings {
		key := benchmarkTest{f.Benchmark, f.Test}
		if once[key] { // the lists and the hashes know it
			continue
		}
		once[key] = true
		found := affectedBy(c.byTest, key)
		found.addTask(task)
		m := found.matches[matchKey{task, f.Of}]
		if m == nil {
			m = &match{}
			found.matches[matchKey{task, f.Of}] = m
		}
		m.share, m.episodes = max(m.share, f.Share), m.episodes+1
		if f.Test == provenance.TestPatch || f.Test == provenance.TestPatchNear {
			m.ids = append(m.ids, e.EpisodeID)
		}
		if whole := (benchmarkTest{benchmark: f.Benchmark}); !once[whole] {
			once[whole] = true
			affectedBy(c.byBenchmark, f.Benchmark).addTask(task)
		}
	}
}

func affectedBy[K comparable](m map[K]*affected, key K) *affected {
	if m[key] == nil {
		m[key] = &affected{tasks: map[taskKey]bool{}, matches: map[matchKey]*match{}}
	}
	return m[key]
}

func (c *affected) addTask(task taskKey) {
	c.episodes++
	c.tasks[task] = true
}
