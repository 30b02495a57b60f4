package synth

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// The kinds of candidates.
const (
	KindSingle   = "single"   // one mutation
	KindComposed = "composed" // two to four mutations, each valid by itself
	KindCommit   = "commit"   // a reverted commit of the repository's history
	KindModel    = "model"    // a function that a model wrote
)

// Kinds lists the kinds of candidates.
var Kinds = []string{KindSingle, KindComposed, KindCommit, KindModel}

// Repo is a healthy repository. The factory uses these fields of its task: InstanceID,
// Entrypoint, DebugEntrypoint, Workdir, Python, Image, Setup, Repo, RepoSource, License,
// BaseCommit and Tests.Files.
type Repo struct {
	Task schemas.Task
	Tree *workspace.Tree
	// History is a directory on the host that contains a .git directory. Tree must be
	// the tree of its HEAD. "" means that the repository has no git history.
	History string
}

// Config configures a run of the factory.
type Config struct {
	Repos []Repo
	Out   string // directory of the task file and the journal

	Seed        int64
	Candidates  int      // number of KindSingle candidates per repository; 0 = every site
	Tasks       int      // stop trying candidates at about this number of tasks (see quota.go); 0 = try all
	Operators   []string // mutation operators to use; nil = all, without obvious changes (mutate.Site.Obvious)
	Commits     int      // number of KindCommit candidates per repository, newest first; 0 = DefaultCommits
	Functions   int      // number of KindModel candidates per repository; 0 = DefaultFunctions
	Kinds       []string // nil = KindSingle alone
	Runs        int      // number of agreeing runs that make a candidate valid; 0 = DefaultRuns
	ReleaseRuns int      // number of agreeing runs of all tests that make it a task; 0 = DefaultReleaseRuns
	MaxFailing  float64  // share of the tests that a bug may break, never all of them; 0 = DefaultMaxFailing
	Caps        Caps
	// Difficulty and GoldDifficulty are the levels of the bugs that become tasks
	// (schemas.DifficultyLevels); nil = all.
	Difficulty     []string
	GoldDifficulty []string
	Text           string  // kind of issue text, one of Texts; "" = the first
	Workers        int     // 0 = 1
	Model          *Model  // writes bugs and reports; nil = no model
	MaxCost        float64 // limit in USD on the cost of model calls, including those of earlier runs; 0 = no limit
	// Benchmarks recognizes the repositories of public benchmarks by their functions,
	// whatever their names are. The factory rejects them. nil = no such check.
	Benchmarks *provenance.Library

	Store *workspace.Store
	// Sandbox returns the driver and the sandbox spec in which the tests of a repository
	// run. The repository's setup commands have already run in that sandbox.
	Sandbox func(context.Context, schemas.Task, env.Tree) (env.Driver, env.SandboxSpec, error)
	// Progress is called after every change, and never concurrently.
	Progress func(Progress)
}

// Caps limit how many similar tasks there are; 0 means no limit.
type Caps struct {
	Line     int     `json:"per_line"` // of the healthy source
	Function int     `json:"per_function"`
	Operator int     `json:"per_operator"` // of one operator in one function
	File     int     `json:"per_file"`
	Share    float64 `json:"repo_share"` // share of all tasks; applies if there are at least 2/Share repositories
}

// DefaultCaps keep tasks diverse. Even a package of two files can yield a thousand tasks.
var DefaultCaps = Caps{Line: 1, Function: 6, Operator: 2, Share: 0.05}

// Defaults of Config.
const (
	DefaultRuns        = 2
	DefaultReleaseRuns = 3
	DefaultCommits     = 50
	DefaultFunctions   = 20
	DefaultMaxFailing  = 0.5
)

// withDefaults returns the configuration with defaults filled in, or a ConfigError if it is
// invalid.
func (c Config) withDefaults() (Config, error) {
	invalid := func(format string, args ...any) error { return &ConfigError{fmt.Sprintf(format, args...)} }
	c.Kinds = slices.Clone(c.Kinds)
	if len(c.Kinds) == 0 {
		c.Kinds = []string{KindSingle}
	}
	c.Runs, c.ReleaseRuns = cmp.Or(c.Runs, DefaultRuns), cmp.Or(c.ReleaseRuns, DefaultReleaseRuns)
	c.Text, c.Workers = cmp.Or(c.Text, Texts[0]), max(c.Workers, 1)
	c.MaxFailing = cmp.Or(c.MaxFailing, DefaultMaxFailing)
	if c.Commits = cmp.Or(c.Commits, DefaultCommits); !slices.Contains(c.Kinds, KindCommit) {
		c.Commits = 0
	}
	if c.Functions = cmp.Or(c.Functions, DefaultFunctions); !slices.Contains(c.Kinds, KindModel) {
		c.Functions = 0
	}
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	for _, level := range slices.Concat(c.Difficulty, c.GoldDifficulty) {
		if !slices.Contains(schemas.DifficultyLevels, level) {
			return c, invalid("unknown difficulty %q: choose from %s", level, strings.Join(schemas.DifficultyLevels, ", "))
		}
	}
	for _, k := range c.Kinds {
		if !slices.Contains(Kinds, k) {
			return c, invalid("unknown kind of bugs %q: choose from %s", k, strings.Join(Kinds, ", "))
		}
	}
	switch {
	case !slices.Contains(Texts, c.Text):
		return c, invalid("unknown text %q: choose from %s", c.Text, strings.Join(Texts, ", "))
	case slices.Contains(c.Kinds, KindComposed) && !slices.Contains(c.Kinds, KindSingle):
		return c, invalid("the kind %s combines bugs of the kind %s: request both", KindComposed, KindSingle)
	case c.Runs < 2 || c.ReleaseRuns < c.Runs:
		return c, invalid("a candidate needs at least 2 runs and a task at least as many, not %d and %d", c.Runs, c.ReleaseRuns)
	case slices.Contains(c.Kinds, KindModel) && c.Model == nil:
		return c, invalid("bugs of the kind %s need a model: set llm.model and llm.base_url", KindModel)
	case c.Text == TextReporter && c.Model == nil:
		return c, invalid("the text %s needs a model: set llm.model and llm.base_url", TextReporter)
	case min(c.Caps.Line, c.Caps.Function, c.Caps.Operator, c.Caps.File) < 0 || c.Caps.Share < 0 || c.Caps.Share > 1:
		return c, invalid("a cap cannot be negative, and a share cannot be more than 1: 0 is no cap")
	case c.MaxFailing < 0 || c.MaxFailing > 1:
		return c, invalid("the share of tests that a bug may break must be between 0 and 1, not %v", c.MaxFailing)
	case c.Tasks < 0:
		return c, invalid("the number of tasks cannot be negative: %d", c.Tasks)
	case min(c.Candidates, c.Commits, c.Functions) < 0:
		return c, invalid("a number of candidates cannot be negative: %d", min(c.Candidates, c.Commits, c.Functions))
	}
	if len(c.Repos) == 0 {
		return c, invalid("no repository is given")
	}
	seen := map[string]bool{}
	for _, r := range c.Repos {
		if seen[r.Task.InstanceID] {
			return c, invalid("two repositories have the name %s: rename one of them", r.Task.InstanceID)
		}
		seen[r.Task.InstanceID] = true
	}
	return c, nil
}

// settings are the values on which the results depend. They are the first line of a
// journal. Tasks alone may change: a run with another number adds a line.
type settings struct {
	Schema         string            `json:"schema"`
	Seed           int64             `json:"seed"`
	Candidates     int               `json:"candidates"`
	Tasks          int               `json:"tasks,omitempty"`
	Operators      []string          `json:"operators"`
	Commits        int               `json:"commits,omitempty"`
	Functions      int               `json:"functions,omitempty"`
	Model          string            `json:"model,omitempty"`
	Kinds          []string          `json:"kinds"`
	Runs           int               `json:"runs"`
	ReleaseRuns    int               `json:"release_runs"`
	MaxFailing     float64           `json:"max_failing"`
	Caps           Caps              `json:"caps"`
	Difficulty     []string          `json:"difficulty,omitempty"`
	GoldDifficulty []string          `json:"gold_difficulty,omitempty"`
	Text           string            `json:"text"`
	TextVersion    int               `json:"text_version"`
	Benchmarks     string            `json:"benchmark_hashes,omitempty"`
	Repos          map[string]string `json:"repos"` // instance ID -> hash of the tree and of how its tests run
}

func (c Config) settings() settings {
	s := settings{
		Schema: "tracesmith.synth/4", Seed: c.Seed, Candidates: c.Candidates, Tasks: c.Tasks, Operators: c.Operators, Kinds: c.Kinds,
		Runs: c.Runs, ReleaseRuns: c.ReleaseRuns, MaxFailing: c.MaxFailing, Text: c.Text, Repos: map[string]string{},
		Commits: c.Commits, Functions: c.Functions, Model: c.Model.identity(), Benchmarks: c.Benchmarks.Hash(),
		TextVersion: TextVersion, Caps: c.Caps, Difficulty: c.Difficulty, GoldDifficulty: c.GoldDifficulty,
	}
	for _, r := range c.Repos {
		s.Repos[r.Task.InstanceID] = schemas.ShortHash([]any{r.Tree.SHA256(), r.Task.Entrypoint, r.Task.Setup, r.Task.Python, r.Task.Image})
	}
	return s
}

// difference describes the first setting that differs from other and must not; "" if none does.
func (s settings) difference(other settings) string {
	for _, f := range []struct {
		name string
		a, b any
	}{
		{"schema", s.Schema, other.Schema}, {"seed", s.Seed, other.Seed}, {"candidates", s.Candidates, other.Candidates},
		{"operators", s.Operators, other.Operators}, {"kinds", s.Kinds, other.Kinds}, {"runs", s.Runs, other.Runs},
		{"commits", s.Commits, other.Commits}, {"functions", s.Functions, other.Functions}, {"model", s.Model, other.Model},
		{"release runs", s.ReleaseRuns, other.ReleaseRuns}, {"text", s.Text, other.Text}, {"version of the texts", s.TextVersion, other.TextVersion},
		{"largest share of failing tests", s.MaxFailing, other.MaxFailing},
		{"caps", s.Caps, other.Caps}, {"difficulty", s.Difficulty, other.Difficulty},
		{"gold difficulty", s.GoldDifficulty, other.GoldDifficulty},
		{"benchmark hashes", s.Benchmarks, other.Benchmarks},
	} {
		if fmt.Sprint(f.a) != fmt.Sprint(f.b) {
			return fmt.Sprintf("%s %v, not %v", f.name, f.a, f.b)
		}
	}
	if !maps.Equal(s.Repos, other.Repos) {
		return fmt.Sprintf("other repositories: %s", strings.Join(slices.Sorted(maps.Keys(s.Repos))[:min(3, len(s.Repos))], ", "))
	}
	return ""
}

// Model writes bugs and issue texts.
type Model struct {
	Client   llms.Client
	Sampling llms.Sampling
}

// identity identifies the model, which must not change when a run resumes; "" without a model.
func (m *Model) identity() string {
	if m == nil {
		return ""
	}
	return m.Client.Provider() + " " + m.Client.Model() + " " + schemas.ShortHash(m.Sampling)
}
