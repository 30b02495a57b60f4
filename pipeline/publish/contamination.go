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

// contaminated collects, episode by episode, what benchmarks know. look may be
// called by many at a time, add by one. It keeps a word of each task and, where
// benchmarks have texts, the hash of each text; no text.
type contaminated struct {
	with     *provenance.Comparison // nil: only the lists of repositories are known
	episodes int
	tasks    map[taskKey]uint8 // bit i: provenance.Tests[i] could be made
	compared [8]int            // episodes, by test
	by       map[benchmarkTest]*concerned
	any      map[string]*concerned // by benchmark

	mu    sync.Mutex
	texts map[textKey]textLook
	below map[benchmarkTest]float64 // the highest share that is below the bound
}

type (
	taskKey       struct{ source, instance string }
	benchmarkTest struct{ benchmark, test string }
	matchKey      struct {
		task taskKey
		of   string
	}
	// concerned are the episodes and tasks in which a benchmark was found.
	concerned struct {
		episodes int
		tasks    map[taskKey]bool
		matches  map[matchKey]*match
	}
	match struct {
		share    float64 // the highest
		episodes int
		ids      []string // of patches: the episodes whose they are
	}
	textKey struct {
		kind int
		sha  [sha256.Size]byte
	}
	// textLook is what comparing one text gave.
	textLook struct {
		comparable [2]bool // by runs of 13 words, by signature
		findings   []provenance.Finding
	}
)

func newContaminated(with *provenance.Comparison) *contaminated {
	return &contaminated{
		with: with, tasks: map[taskKey]uint8{}, by: map[benchmarkTest]*concerned{}, any: map[string]*concerned{},
		texts: map[textKey]textLook{}, below: map[benchmarkTest]float64{},
	}
}

// looked is what one episode gave.
type looked struct {
	can      uint8
	findings []provenance.Finding
}

// look compares one episode.
func (c *contaminated) look(s sinks.Staged) (out looked) {
	e := s.Episode
	names := provenance.Names{Instance: e.InstanceID, BaseCommit: text(e.BaseCommit)}
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
			l := c.text(kind, textOf(kind, s))
			can[tests[0]], can[tests[1]] = l.comparable[0], l.comparable[1]
			out.findings = append(out.findings, l.findings...)
		}
	}
	out.findings = append(out.findings, listed(e)...)
	for i, test := range provenance.Tests {
		if can[test] {
			out.can |= 1 << i
		}
	}
	return out
}

// textOf is a text of an episode as it was staged; a long patch stands in a blob.
func textOf(kind int, s sinks.Staged) string {
	switch {
	case kind == provenance.Statements:
		return text(s.Episode.ProblemStatement)
	case s.Episode.Patch != nil || s.Episode.PatchSHA256 == nil:
		return text(s.Episode.Patch)
	}
	for _, b := range s.Blobs {
		if b.SHA256 == *s.Episode.PatchSHA256 {
			return b.Content
		}
	}
	return ""
}

// text compares a text, once.
func (c *contaminated) text(kind int, body string) textLook {
	if body == "" {
		return textLook{}
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
	l = textLook{comparable: [2]bool{len(p.Grams) >= overlap.Least, p.Shingles >= overlap.Least}}
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

// listed is what column contamination says, which the lists of repositories and
// the kinds of task sources decide.
func listed(e schemas.EpisodeRow) (out []provenance.Finding) {
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

// add counts an episode.
func (c *contaminated) add(e schemas.EpisodeRow, l looked) {
	task := taskKey{e.TaskSource, e.InstanceID}
	c.episodes++
	c.tasks[task] |= l.can
	for i := range provenance.Tests {
		if l.can&(1<<i) != 0 {
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
		found := at(c.by, key)
		found.add(task)
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
			at(c.any, f.Benchmark).add(task)
		}
	}
}

func at[K comparable](m map[K]*concerned, key K) *concerned {
	if m[key] == nil {
		m[key] = &concerned{tasks: map[taskKey]bool{}, matches: map[matchKey]*match{}}
	}
	return m[key]
}

func (c *concerned) add(task taskKey) {
	c.episodes++
	c.tasks[task] = true
}
