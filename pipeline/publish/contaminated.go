package publish

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/env/tasks/provenance/overlap"
	"github.com/tracesmith/tracesmith/schemas"
)

// contaminationPath is where Contamination stands in a version.
const contaminationPath = "reports/contamination.json"

// Contamination is reports/contamination.json: which of the tasks and episodes are
// those of public benchmarks, by which test, and what could not be compared.
// Nothing is left out of a dataset because of it.
type Contamination struct {
	Schema     string           `json:"schema"` // tracesmith.contamination/1
	Episodes   int              `json:"episodes"`
	Tasks      int              `json:"tasks"`
	Lists      Lists            `json:"lists"`
	Hashes     string           `json:"hashes,omitempty"` // identity of the files of "tasks hashes"; "" without any
	Bounds     Bounds           `json:"bounds"`
	Tests      []ComparedTest   `json:"tests"`
	Benchmarks []BenchmarkFound `json:"benchmarks"` // by name
	Limits     []string         `json:"limits"`
}

// Lists are those of repositories that tracesmith brings.
type Lists struct {
	Version int            `json:"version"`
	Repos   map[string]int `json:"repos"` // by benchmark
}

// Bounds say from when on a text counts as a benchmark's.
type Bounds struct {
	Words13      float64 `json:"share_13gram"`       // of the shorter text's runs of 13 words
	MinHash      float64 `json:"similarity_minhash"` // of the signatures of runs of 5 words
	Least        int     `json:"least_runs"`         // that both texts must have
	CommonBeyond int     `json:"common_beyond"`      // a run of 13 words in more of a benchmark's texts is a form, and not counted
}

// ComparedTest says what a test was made with, and how much of the dataset has what
// it needs.
type ComparedTest struct {
	Test            string `json:"test"`
	With            string `json:"with"` // lists, hashes, lists and hashes, or nothing
	Tasks           int    `json:"tasks"`
	TasksWithout    int    `json:"tasks_not_compared"`
	Episodes        int    `json:"episodes"`
	EpisodesWithout int    `json:"episodes_not_compared"`
}

// BenchmarkFound is what was found of one benchmark. Tasks and Episodes are those
// of any test.
type BenchmarkFound struct {
	Benchmark string                 `json:"benchmark"`
	Hashed    provenance.KnownCounts `json:"hashed"` // what its hashes hold
	Tasks     int                    `json:"tasks"`
	Episodes  int                    `json:"episodes"`
	Share     float64                `json:"share"` // of all episodes
	Tests     []TestFound            `json:"tests"`
}

// TestFound is what one test found of one benchmark.
type TestFound struct {
	Test     string      `json:"test"`
	Compared bool        `json:"compared"` // false: nothing of the benchmark was at hand for it
	Tasks    int         `json:"tasks"`
	Episodes int         `json:"episodes"`
	Share    float64     `json:"share"`                   // of all episodes
	Below    float64     `json:"highest_below,omitempty"` // highest overlap that is below the bound
	Found    []TaskFound `json:"found"`
}

// TaskFound is one task and what it was found to be of.
type TaskFound struct {
	Source   string   `json:"task_source"`
	Instance string   `json:"instance_id"`
	Of       string   `json:"of"`                // instance, repository, commit or request of the benchmark
	Overlap  float64  `json:"overlap,omitempty"` // of texts: the highest of its episodes
	Episodes int      `json:"episodes"`
	IDs      []string `json:"episode_ids,omitempty"` // of patches, which are each episode's own
}

// identity is that of what is compared with; "" without hashes.
func (c *contaminated) identity() string {
	if c.with == nil {
		return ""
	}
	return c.with.Identity
}

// report is what was found.
func (c *contaminated) report() Contamination {
	r := Contamination{
		Schema: "tracesmith.contamination/1", Episodes: c.episodes, Tasks: len(c.tasks), Hashes: c.identity(),
		Lists:  Lists{provenance.ListVersion, provenance.Listed()},
		Bounds: Bounds{overlap.GramShare, overlap.NearShare, overlap.Least, overlap.Common},
		Limits: []string{
			"the reference fixes of these tasks are not staged: the patch that each episode left is compared",
			"a text that was said in other words, or translated, is not found",
		},
	}
	known := map[string]provenance.KnownCounts{}
	if c.with != nil {
		for _, k := range c.with.Benchmarks {
			known[k.Name] = k.Counts
		}
	} else {
		r.Limits = append(r.Limits, "no hashes of benchmarks were given (publish --benchmark-hashes): commits, statements and patches are not compared, ids by their form alone")
	}
	names := map[string]bool{}
	for _, of := range []map[string]bool{keys(r.Lists.Repos), keys(known), keys(c.any)} {
		maps.Copy(names, of)
	}
	for i, test := range provenance.Tests {
		r.Tests = append(r.Tests, c.comparedTest(i, test))
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		r.Benchmarks = append(r.Benchmarks, c.benchmark(name, known[name], r.Lists.Repos[name]))
	}
	return r
}

func keys[V any](m map[string]V) map[string]bool {
	out := map[string]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}

func (c *contaminated) comparedTest(i int, test string) ComparedTest {
	t := ComparedTest{Test: test, With: "nothing", Episodes: c.compared[i]}
	switch {
	case (test == provenance.TestRepo || test == provenance.TestInstance) && c.with != nil:
		t.With = "lists and hashes"
	case test == provenance.TestRepo || test == provenance.TestInstance:
		t.With = "lists"
	case c.with != nil:
		t.With = "hashes"
	}
	for _, can := range c.tasks {
		if can&(1<<i) != 0 {
			t.Tasks++
		}
	}
	t.TasksWithout, t.EpisodesWithout = len(c.tasks)-t.Tasks, c.episodes-t.Episodes
	return t
}

func (c *contaminated) benchmark(name string, has provenance.KnownCounts, listed int) BenchmarkFound {
	b := BenchmarkFound{Benchmark: name, Hashed: has}
	if all := c.any[name]; all != nil {
		b.Tasks, b.Episodes = len(all.tasks), all.episodes
	}
	b.Share = c.share(b.Episodes)
	for test, there := range map[string]int{
		provenance.TestInstance: listed + has.Tasks, provenance.TestRepo: listed + has.Repos, provenance.TestCommit: has.Commits,
		provenance.TestStatement: has.Statements, provenance.TestStatementNear: has.NearStatements,
		provenance.TestPatch: has.Patches, provenance.TestPatchNear: has.NearPatches,
	} {
		b.Tests = append(b.Tests, c.test(benchmarkTest{name, test}, there > 0))
	}
	slices.SortFunc(b.Tests, func(a, b TestFound) int {
		return cmp.Compare(slices.Index(provenance.Tests, a.Test), slices.Index(provenance.Tests, b.Test))
	})
	return b
}

func (c *contaminated) test(key benchmarkTest, compared bool) TestFound {
	t := TestFound{Test: key.test, Compared: compared, Below: round(c.below[key]), Found: []TaskFound{}}
	found := c.by[key]
	if found == nil {
		return t
	}
	t.Compared, t.Tasks, t.Episodes, t.Share = true, len(found.tasks), found.episodes, c.share(found.episodes)
	for k, m := range found.matches {
		slices.Sort(m.ids)
		t.Found = append(t.Found, TaskFound{k.task.source, k.task.instance, k.of, round(m.share), m.episodes, m.ids})
	}
	slices.SortFunc(t.Found, func(a, b TaskFound) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Of, b.Of))
	})
	return t
}

func (c *contaminated) share(episodes int) float64 {
	return round(float64(episodes) / float64(max(1, c.episodes)))
}

func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// Cell is what the card says about a test.
func (t TestFound) Cell() string {
	if !t.Compared {
		return "not compared"
	}
	return fmt.Sprintf("%d / %d", t.Tasks, t.Episodes)
}

// file is the report as it is published.
func (r Contamination) file() (textFile, error) {
	raw, err := schemas.CanonicalJSON(r)
	return textFile{contaminationPath, raw}, err
}
