package provenance

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/provenance/overlap"
	"github.com/tracesmith/tracesmith/schemas"
)

// TaskPrintsSchema is that of a line about a task in a file of prints.
const TaskPrintsSchema = "tracesmith.hashes.task/1"

// TaskPrints is what a task of a benchmark is known by. It holds none of its words.
type TaskPrints struct {
	Schema     string        `json:"schema"`
	Benchmark  string        `json:"benchmark"`
	Repo       string        `json:"repo"` // as Upstream names it
	Instance   string        `json:"instance_id"`
	BaseCommit string        `json:"base_commit,omitempty"`
	Statement  overlap.Print `json:"statement"` // of the instructions
	Patch      overlap.Print `json:"patch"`     // of what the reference fix changes (overlap.Changed)
}

// PrintsOf makes the prints of a task.
func PrintsOf(t schemas.Task, benchmark string) TaskPrints {
	commit := t.BaseCommit
	if commit == "" && t.Origin != nil {
		commit = t.Origin.BaseCommit
	}
	return TaskPrints{
		Schema: TaskPrintsSchema, Benchmark: benchmark, Repo: Upstream(t), Instance: t.InstanceID, BaseCommit: commit,
		Statement: overlap.PrintOf(t.Instructions), Patch: overlap.PrintOf(overlap.Changed(t.GoldPatch)),
	}
}

// BenchmarkOf names the benchmark that a task is of: the one whose tasks its source
// hands out, or that has its repository; "" if none is known.
func BenchmarkOf(t schemas.Task) string { return cmp.Or(sources[t.Source], Benchmark(Upstream(t))) }

// taskName tells the tasks of a library apart.
type taskName struct{ benchmark, instance string }

func (n taskName) compare(o taskName) int {
	return cmp.Or(strings.Compare(n.benchmark, o.benchmark), strings.Compare(n.instance, o.instance))
}

// AddTask puts a task in. One that is there already must be the same.
func (l *Library) AddTask(p TaskPrints) error {
	if l.tasks == nil {
		l.tasks = map[taskName]TaskPrints{}
	}
	name := taskName{p.Benchmark, p.Instance}
	if was, twice := l.tasks[name]; twice && schemas.Hash(was) != schemas.Hash(p) {
		return fmt.Errorf("task %s of %s was there before with other texts: leave one of the two out, or give its benchmark another name (tasks hashes --benchmark)", p.Instance, p.Benchmark)
	}
	l.tasks[name] = p
	return nil
}

func parseTaskPrints(line []byte) (p TaskPrints, err error) {
	if err := strictly(line, &p); err != nil {
		return p, err
	}
	if p.Repo == "" || p.Benchmark == "" || p.Instance == "" {
		return p, errors.New("it names no repo, no benchmark or no instance_id")
	}
	return p, nil
}

// fullCommit is the form of a commit's id that is not shortened.
var fullCommit = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// request names the merged request that an instance's id names: its canonical
// repository and the number; "" for ids of other forms.
func requestOf(id string) string {
	if !request.MatchString(id) {
		return ""
	}
	return Canonical(id) + "#" + id[strings.LastIndexByte(id, '-')+1:]
}

// Comparison finds tasks of benchmarks again. Safe for concurrent use.
type Comparison struct {
	Identity   string // of all that it knows
	Benchmarks []*Known
}

// Known is what is known of one benchmark.
type Known struct {
	Name     string
	Counts   KnownCounts
	repos    map[string]bool
	ids      map[string]string // instance -> repository
	commits  map[string]bool
	requests map[string]bool
	texts    [2]overlap.Index // statements, patches
}

// KnownCounts are what of a benchmark's tasks can be found again.
type KnownCounts struct {
	Repos          int `json:"repos"`
	Tasks          int `json:"tasks"`
	Commits        int `json:"commits"` // tasks with a base commit, or the number of a request
	Statements     int `json:"statement_13gram"`
	NearStatements int `json:"statement_minhash"`
	Patches        int `json:"patch_13gram"`
	NearPatches    int `json:"patch_minhash"`
}

// Comparison is made of what the library has now.
func (l *Library) Comparison() *Comparison {
	c := &Comparison{}
	of := map[string]*Known{}
	known := func(name string) *Known {
		if of[name] == nil {
			of[name] = &Known{Name: name, repos: map[string]bool{}, ids: map[string]string{}, commits: map[string]bool{}, requests: map[string]bool{}}
			c.Benchmarks = append(c.Benchmarks, of[name])
		}
		return of[name]
	}
	for repo, benchmark := range l.benchmark {
		known(benchmark).repos[repo] = true
	}
	names := make([]taskName, 0, len(l.tasks))
	for name := range l.tasks {
		names = append(names, name)
	}
	slices.SortFunc(names, taskName.compare)
	hashes := make([]string, 0, len(names))
	for _, name := range names {
		p := l.tasks[name]
		hashes = append(hashes, schemas.Hash(p))
		known(p.Benchmark).add(p)
	}
	slices.SortFunc(c.Benchmarks, func(a, b *Known) int { return strings.Compare(a.Name, b.Name) })
	repos := map[string][]string{}
	for _, k := range c.Benchmarks {
		k.seal()
		repos[k.Name] = slices.Sorted(maps.Keys(k.repos))
	}
	c.Identity = schemas.ShortHash([]any{repos, hashes})
	return c
}

func (k *Known) add(p TaskPrints) {
	k.repos[p.Repo] = true
	k.ids[p.Instance] = p.Repo
	number := requestOf(p.Instance)
	if number != "" {
		k.requests[number] = true
	}
	if fullCommit.MatchString(p.BaseCommit) {
		k.commits[p.BaseCommit] = true
	}
	if number != "" || fullCommit.MatchString(p.BaseCommit) {
		k.Counts.Commits++
	}
	k.texts[0].Add(p.Instance, p.Statement)
	k.texts[1].Add(p.Instance, p.Patch)
}

func (k *Known) seal() {
	k.texts[0].Seal()
	k.texts[1].Seal()
	k.Counts.Repos, k.Counts.Tasks = len(k.repos), len(k.ids)
	k.Counts.Statements, k.Counts.NearStatements = k.texts[0].Texts()
	k.Counts.Patches, k.Counts.NearPatches = k.texts[1].Texts()
}
