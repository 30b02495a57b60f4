package provenance

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/provenance/overlap"
	"github.com/tracesmith/tracesmith/schemas"
)

// fullCommit matches the full id of a commit.
var fullCommit = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// requestOf returns the merged pull request that the id of an instance names, as canonical
// repository and number; "" for ids of other forms.
func requestOf(id string) string {
	if !request.MatchString(id) {
		return ""
	}
	return Canonical(id) + "#" + id[strings.LastIndexByte(id, '-')+1:]
}

// Comparison recognizes tasks of benchmarks. It is safe for concurrent use.
type Comparison struct {
	Identity   string // hash of its content
	Benchmarks []*Known
}

// Known is what a Comparison knows about one benchmark: the names and hashes of its tasks.
type Known struct {
	Name     string
	Counts   KnownCounts
	repos    map[string]bool
	ids      map[string]string // instance -> repository
	commits  map[string]bool
	requests map[string]bool
	texts    [2]overlap.Index // statements, patches
}

// KnownCounts says how many tasks of a benchmark each test can recognize.
type KnownCounts struct {
	Repos          int `json:"repos"`
	Tasks          int `json:"tasks"`
	Commits        int `json:"commits"` // tasks with a base commit or the number of a pull request
	Statements     int `json:"statement_13gram"`
	NearStatements int `json:"statement_minhash"`
	Patches        int `json:"patch_13gram"`
	NearPatches    int `json:"patch_minhash"`
}

// Comparison returns a Comparison with the current content of the library.
func (l *Library) Comparison() *Comparison {
	c := &Comparison{}
	byName := map[string]*Known{}
	known := func(name string) *Known {
		if byName[name] == nil {
			byName[name] = &Known{Name: name, repos: map[string]bool{}, ids: map[string]string{}, commits: map[string]bool{}, requests: map[string]bool{}}
			c.Benchmarks = append(c.Benchmarks, byName[name])
		}
		return byName[name]
	}
	for repo, benchmark := range l.benchmark {
		known(benchmark).repos[repo] = true
	}
	hashes := make([]string, 0, len(l.tasks))
	for _, name := range slices.SortedFunc(maps.Keys(l.tasks), taskName.compare) {
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

func (k *Known) add(p TaskHashes) {
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
