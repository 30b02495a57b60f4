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

// contaminationPath is the path of Contamination in a version.
const contaminationPath = "reports/contamination.json"

// Contamination is the content of reports/contamination.json. It lists the tasks and
// episodes that match public benchmarks, by test, and counts those that could not be
// compared. It does not change which episodes are published.
type Contamination struct {
	Schema     string           `json:"schema"` // tracesmith.contamination/1
	Episodes   int              `json:"episodes"`
	Tasks      int              `json:"tasks"`
	Lists      Lists            `json:"lists"`
	Hashes     string           `json:"hashes,omitempty"` // identifies the files written by "tasks hashes"; "" without such files
	Bounds     Bounds           `json:"bounds"`
	Tests      []ComparedTest   `json:"tests"`
	Benchmarks []BenchmarkFound `json:"benchmarks"` // sorted by name
	Limits     []string         `json:"limits"`
}

// Lists describes the built-in lists of benchmarks' repositories.
type Lists struct {
	Version int            `json:"version"`
	Repos   map[string]int `json:"repos"` // number of repositories by benchmark
}

// Bounds are the thresholds from which on a text matches a text of a benchmark.
type Bounds struct {
	Words13 float64 `json:"share_13gram"`       // share of the shorter text's 13-word runs
	MinHash float64 `json:"similarity_minhash"` // Jaccard similarity, estimated from signatures of 5-word runs
	MinRuns int     `json:"least_runs"`         // minimum number of runs in each of the two texts
	// CommonBeyond is the number of a benchmark's texts beyond which a shared 13-word run counts
	// as boilerplate and is ignored.
	CommonBeyond int `json:"common_beyond"`
}

// ComparedTest describes which data a test used and how much of the dataset it covered.
type ComparedTest struct {
	Test            string `json:"test"`
	With            string `json:"with"` // lists, hashes, lists and hashes, or nothing
	Tasks           int    `json:"tasks"`
	TasksWithout    int    `json:"tasks_not_compared"`
	Episodes        int    `json:"episodes"`
	EpisodesWithout int    `json:"episodes_not_compared"`
}

// BenchmarkFound is the result for one benchmark. Tasks and Episodes count the matches of
// all tests together.
type BenchmarkFound struct {
	Benchmark string                 `json:"benchmark"`
	Hashed    provenance.KnownCounts `json:"hashed"` // what the benchmark's hashes contain
	Tasks     int                    `json:"tasks"`
	Episodes  int                    `json:"episodes"`
	Share     float64                `json:"share"` // of all episodes
	Tests     []TestFound            `json:"tests"`
}

// TestFound is the result of one test for one benchmark.
type TestFound struct {
	Test     string      `json:"test"`
	Compared bool        `json:"compared"` // false if there is no data of the benchmark for this test
	Tasks    int         `json:"tasks"`
	Episodes int         `json:"episodes"`
	Share    float64     `json:"share"`                   // of all episodes
	Below    float64     `json:"highest_below,omitempty"` // highest overlap that is below the bound
	Found    []TaskFound `json:"found"`
}

// TaskFound is one task that matches a benchmark.
type TaskFound struct {
	Source   string   `json:"task_source"`
	Instance string   `json:"instance_id"`
	Original string   `json:"of"`                // the matching instance, repository, commit or request of the benchmark
	Overlap  float64  `json:"overlap,omitempty"` // for texts: the maximum over the task's episodes
	Episodes int      `json:"episodes"`
	IDs      []string `json:"episode_ids,omitempty"` // for patches, which differ by episode: the matching episodes
}

// identity identifies the hashes of benchmarks that are used; "" without hashes.
func (c *contaminationCheck) identity() string {
	if c.benchmarks == nil {
		return ""
	}
	return c.benchmarks.Identity
}

// report returns the results for the episodes added so far.
func (c *contaminationCheck) report() Contamination {
	r := Contamination{
		Schema: "tracesmith.contamination/1", Episodes: c.episodes, Tasks: len(c.tasks), Hashes: c.identity(),
		Lists:  Lists{provenance.ListVersion, provenance.BenchmarkSizes()},
		Bounds: Bounds{overlap.GramShare, overlap.NearShare, overlap.MinRuns, overlap.MaxSharing},
		Limits: []string{
			"patches are the final patches of the episodes, because the reference fixes of the tasks are not staged",
			"paraphrased or translated texts are not found",
		},
	}
	known := map[string]provenance.KnownCounts{}
	if c.benchmarks != nil {
		for _, k := range c.benchmarks.Benchmarks {
			known[k.Name] = k.Counts
		}
	} else {
		r.Limits = append(r.Limits, "no hashes of benchmarks were given (publish --benchmark-hashes): commits, statements and patches are not compared, and ids only by their format")
	}
	names := slices.Concat(slices.Collect(maps.Keys(r.Lists.Repos)), slices.Collect(maps.Keys(known)), slices.Collect(maps.Keys(c.byBenchmark)))
	slices.Sort(names)
	for i, test := range provenance.Tests {
		r.Tests = append(r.Tests, c.comparedTest(i, test))
	}
	for _, name := range slices.Compact(names) {
		r.Benchmarks = append(r.Benchmarks, c.benchmark(name, known[name], r.Lists.Repos[name]))
	}
	return r
}

// comparedTest returns how much of the dataset the i-th test of provenance.Tests covered.
func (c *contaminationCheck) comparedTest(i int, test string) ComparedTest {
	t := ComparedTest{Test: test, With: "nothing", Episodes: c.compared[i]}
	switch {
	case (test == provenance.TestRepo || test == provenance.TestInstance) && c.benchmarks != nil:
		t.With = "lists and hashes"
	case test == provenance.TestRepo || test == provenance.TestInstance:
		t.With = "lists"
	case c.benchmarks != nil:
		t.With = "hashes"
	}
	for _, testable := range c.tasks {
		if testable&(1<<i) != 0 {
			t.Tasks++
		}
	}
	t.TasksWithout, t.EpisodesWithout = len(c.tasks)-t.Tasks, c.episodes-t.Episodes
	return t
}

// benchmark returns the result for one benchmark. has counts what its hashes contain, listed is
// the number of its repositories in the built-in list.
func (c *contaminationCheck) benchmark(name string, has provenance.KnownCounts, listed int) BenchmarkFound {
	b := BenchmarkFound{Benchmark: name, Hashed: has}
	if all := c.byBenchmark[name]; all != nil {
		b.Tasks, b.Episodes = len(all.tasks), all.episodes
	}
	b.Share = c.share(b.Episodes)
	for test, n := range map[string]int{
		provenance.TestInstance: listed + has.Tasks, provenance.TestRepo: listed + has.Repos, provenance.TestCommit: has.Commits,
		provenance.TestStatement: has.Statements, provenance.TestStatementNear: has.NearStatements,
		provenance.TestPatch: has.Patches, provenance.TestPatchNear: has.NearPatches,
	} {
		b.Tests = append(b.Tests, c.test(benchmarkTest{name, test}, n > 0))
	}
	slices.SortFunc(b.Tests, func(a, b TestFound) int {
		return cmp.Compare(slices.Index(provenance.Tests, a.Test), slices.Index(provenance.Tests, b.Test))
	})
	return b
}

// test returns the result of one test for one benchmark.
func (c *contaminationCheck) test(key benchmarkTest, compared bool) TestFound {
	t := TestFound{Test: key.test, Compared: compared, Below: round(c.highestBelow[key]), Found: []TaskFound{}}
	found := c.byTest[key]
	if found == nil {
		return t
	}
	t.Compared, t.Tasks, t.Episodes, t.Share = true, len(found.tasks), found.episodes, c.share(found.episodes)
	for k, m := range found.matches {
		slices.Sort(m.ids)
		t.Found = append(t.Found, TaskFound{k.task.source, k.task.instance, k.of, round(m.share), m.episodes, m.ids})
	}
	slices.SortFunc(t.Found, func(a, b TaskFound) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Original, b.Original))
	})
	return t
}

func (c *contaminationCheck) share(episodes int) float64 {
	return round(float64(episodes) / float64(max(1, c.episodes)))
}

func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// cell returns the card's table cell for a test.
func (t TestFound) cell() string {
	if !t.Compared {
		return "not compared"
	}
	return fmt.Sprintf("%d / %d", t.Tasks, t.Episodes)
}

func (r Contamination) file() (textFile, error) {
	raw, err := schemas.CanonicalJSON(r)
	return textFile{contaminationPath, raw}, err
}
