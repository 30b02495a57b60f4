// Package configs merges YAML files, environment variables and command-line
// overrides into one validated Config. It is the only package that uses viper.
//
// Precedence, from low to high: defaults, files in the given order (deep merge,
// lists replaced), environment (TRACESMITH_AGENT__KIND), -p a.b=value, flags.
package configs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Config is the configuration of one run.
type Config struct {
	Version int     `mapstructure:"version" json:"version"`
	Run     Run     `mapstructure:"run" json:"run"`
	Tasks   Tasks   `mapstructure:"tasks" json:"tasks"`
	Sandbox Sandbox `mapstructure:"sandbox" json:"sandbox"`
	Agent   Agent   `mapstructure:"agent" json:"agent"`
	LLM     LLM     `mapstructure:"llm" json:"llm"`
	Models  Models  `mapstructure:"models" json:"models,omitempty"`
	MCP     MCP     `mapstructure:"mcp" json:"mcp,omitempty"`
	Limits  Limits  `mapstructure:"limits" json:"limits"`
	Prices  []Price `mapstructure:"prices" json:"prices,omitempty"`
	S3      S3      `mapstructure:"s3" json:"s3"`
	Publish Publish `mapstructure:"publish" json:"publish"`
	// NATS may contain a password in its URL and is therefore never written to a file.
	NATS   NATS   `mapstructure:"nats" json:"-"`
	Engine Engine `mapstructure:"engine" json:"engine"`

	Places  Places   `mapstructure:"-" json:"-"` // where each setting was written
	Renamed []string `mapstructure:"-" json:"-"` // a sentence for each value that has another name today
}

// Run is the name, the place and the parallelism of a run.
type Run struct {
	Name     string `mapstructure:"name" json:"name"`
	Dir      string `mapstructure:"dir" json:"dir"` // identifies the run; --run-dir takes precedence
	Workers  int    `mapstructure:"workers" json:"workers"`
	Attempts int    `mapstructure:"attempts" json:"attempts"`
	// Starts and Gradings limit how much a process demands of the machine and of a
	// container daemon at one time; 0 = only limited by Workers. The limit for models
	// is their setting parallel.
	Starts   int `mapstructure:"starts" json:"starts,omitempty"`     // concurrent starts of sandboxes, of each kind
	Gradings int `mapstructure:"gradings" json:"gradings,omitempty"` // concurrent test runs for verdicts and baselines
	// Staging is the store of finished episodes: a directory or s3://bucket/prefix,
	// with one folder per run; "" = the run's directory.
	Staging string `mapstructure:"staging" json:"staging,omitempty"`
}

// NATS is the cluster that distributes jobs. Without a URL, the engine runs inside the process.
type NATS struct {
	URL      string `mapstructure:"url"`      // one or more, separated by commas; --nats takes precedence
	Creds    string `mapstructure:"creds"`    // file with the JWT and the seed of a user
	Replicas int    `mapstructure:"replicas"` // copies of stored data; 0 = 3 with three or more nodes, otherwise 1
	TLS      TLS    `mapstructure:"tls"`
}

// TLS names PEM files.
type TLS struct {
	CA   string `mapstructure:"ca"`   // CA of the servers' certificates; "" = the system's CAs
	Cert string `mapstructure:"cert"` // client certificate, if the servers require one
	Key  string `mapstructure:"key"`
}

// Engine configures the distribution of jobs.
type Engine struct {
	Lease    time.Duration `mapstructure:"lease" json:"lease"`                   // a worker that is silent for this time loses its job
	InFlight int           `mapstructure:"in_flight" json:"in_flight,omitempty"` // concurrent jobs of all workers of a cluster; 0 = no limit
}

// Tasks selects the tasks: a source (env.Sources), its settings and filters.
type Tasks struct {
	Source string   `mapstructure:"source" json:"source"`
	With   Block    `mapstructure:"with" json:"with,omitempty"`
	IDs    []string `mapstructure:"ids" json:"ids,omitempty"`
	Filter string   `mapstructure:"filter" json:"filter,omitempty"` // regular expression on instance ids
	Slice  string   `mapstructure:"slice" json:"slice,omitempty"`   // from:to; either may be empty
}

// Sandbox selects the sandbox driver. Kind "" means bubblewrap, or docker for tasks
// that name an image. With holds the settings of the driver.
type Sandbox struct {
	Kind           string        `mapstructure:"kind" json:"kind"`
	With           Block         `mapstructure:"with" json:"with,omitempty"`
	Image          string        `mapstructure:"image" json:"image,omitempty"`
	Python         string        `mapstructure:"python" json:"python,omitempty"`
	Memory         ByteSize      `mapstructure:"memory" json:"memory,omitempty"`
	Disk           ByteSize      `mapstructure:"disk" json:"disk,omitempty"`
	Processes      int           `mapstructure:"processes" json:"processes,omitempty"`
	CPUs           float64       `mapstructure:"cpus" json:"cpus,omitempty"`
	CommandTimeout time.Duration `mapstructure:"command_timeout" json:"command_timeout"`
	VerifyTimeout  time.Duration `mapstructure:"verify_timeout" json:"verify_timeout"`
	SetupTimeout   time.Duration `mapstructure:"setup_timeout" json:"setup_timeout"`
	SetupCache     ByteSize      `mapstructure:"setup_cache" json:"setup_cache,omitempty"` // total size of cached set-up results; 0 = no limit
}

// Agent is a policy (agents.Registry), its settings, its tools and its limits.
type Agent struct {
	Kind            string        `mapstructure:"kind" json:"kind"`
	With            Block         `mapstructure:"with" json:"with,omitempty"`
	Tools           []Tool        `mapstructure:"tools" json:"tools"`
	Prompts         Prompts       `mapstructure:"prompts" json:"prompts,omitzero"`
	MaxSteps        int           `mapstructure:"max_steps" json:"max_steps"` // turns
	MaxFormatErrors int           `mapstructure:"max_format_errors" json:"max_format_errors"`
	MaxRepeats      int           `mapstructure:"max_repeats" json:"max_repeats"`
	MaxPromptTokens int64         `mapstructure:"max_prompt_tokens" json:"max_prompt_tokens,omitempty"`
	Wall            time.Duration `mapstructure:"wall" json:"wall"`
}

// Prompts are template files that replace the agent's own prompts; "" = the agent's own.
type Prompts struct {
	System  string `mapstructure:"system" json:"system,omitempty"`
	Problem string `mapstructure:"problem" json:"problem,omitempty"`
	// For agents with a second conversation: the solver of agent seeker.
	SolveSystem  string `mapstructure:"solve_system" json:"solve_system,omitempty"`
	SolveProblem string `mapstructure:"solve_problem" json:"solve_problem,omitempty"`
}

// Limits are the maximum costs of models, in USD, of all workers of a cluster
// together; 0 = no limit.
type Limits struct {
	TotalCost   float64 `mapstructure:"total_cost" json:"total_cost,omitempty"`     // of the run, which then stops; it can be resumed with a higher limit
	TaskCost    float64 `mapstructure:"task_cost" json:"task_cost,omitempty"`       // of all attempts at one task, which then end
	EpisodeCost float64 `mapstructure:"episode_cost" json:"episode_cost,omitempty"` // of one attempt, which then ends
}

// Any reports whether there is a limit.
func (l Limits) Any() bool { return l.TotalCost > 0 || l.TaskCost > 0 || l.EpisodeCost > 0 }

// Price is the price of a model in USD per million tokens. Prices are a list because
// viper cannot use model names, with their dots and capitals, as keys.
type Price struct {
	Model  string   `mapstructure:"model" json:"model"`
	Input  float64  `mapstructure:"input" json:"input"`
	Cached *float64 `mapstructure:"cached" json:"cached,omitempty"` // for tokens read from the server's prompt cache; unset: input, with provider anthropic 0.1 times input
	// CacheWrite is for tokens written to the server's prompt cache, CacheWrite1h for
	// tokens written with a lifetime of one hour; unset: 1.25 and 2 times input.
	CacheWrite   *float64 `mapstructure:"cache_write" json:"cache_write,omitempty"`
	CacheWrite1h *float64 `mapstructure:"cache_write_1h" json:"cache_write_1h,omitempty"`
	Output       float64  `mapstructure:"output" json:"output"`
	Free         bool     `mapstructure:"free" json:"free,omitempty"`
}

// S3 holds the settings of S3-compatible stores. Credentials come from the AWS
// environment variables and files.
type S3 struct {
	Endpoint  string `mapstructure:"endpoint" json:"endpoint,omitempty"`
	Region    string `mapstructure:"region" json:"region,omitempty"`
	PathStyle bool   `mapstructure:"path_style" json:"path_style,omitempty"`
	Checksum  string `mapstructure:"checksum" json:"checksum,omitempty"` // auto or off
}

// Publish, if To is set, makes the command run publish its episodes.
type Publish struct {
	To        string `mapstructure:"to" json:"to,omitempty"`
	Name      string `mapstructure:"name" json:"name,omitempty"`
	Selection string `mapstructure:"selection" json:"selection,omitempty"`
	// BenchmarkHashes are files written by "tasks hashes" to check the dataset for contamination.
	BenchmarkHashes []string `mapstructure:"benchmark_hashes" json:"benchmark_hashes,omitempty"`
}

// Block holds a component's own settings as written (viper would convert its keys to
// lower case). The component's spec decodes it strictly.
type Block map[string]any

// ByteSize is a number of bytes, written as 512MB, 2GiB or a plain number.
type ByteSize int64

// UnmarshalText reads a size; units are powers of 1024.
func (b *ByteSize) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	if s == "-1" { // no limit
		*b = -1
		return nil
	}
	digits := strings.TrimRight(s, "kKmMgGiIbB ")
	unit := strings.ToLower(strings.TrimSpace(s[len(digits):]))
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || n < 0 || math.IsNaN(n) {
		return fmt.Errorf("%q is not a size: write 512MB, 2GiB or a number of bytes", s)
	}
	shift, ok := map[string]int{"": 0, "b": 0, "k": 10, "kb": 10, "kib": 10, "m": 20, "mb": 20, "mib": 20, "g": 30, "gb": 30, "gib": 30}[unit]
	if !ok || n*float64(int64(1)<<shift) > math.MaxInt64/2 {
		return fmt.Errorf("%q is not a size: write 512MB, 2GiB or a number of bytes", s)
	}
	*b = ByteSize(n * float64(int64(1)<<shift))
	return nil
}

// UnmarshalJSON reads a size from a number of bytes or a text.
func (b *ByteSize) UnmarshalJSON(raw []byte) error {
	return b.UnmarshalText([]byte(strings.Trim(string(raw), `"`)))
}

// Default returns the default configuration.
func Default() Config {
	return Config{
		Version: 1,
		Run:     Run{Name: "run", Workers: 2, Attempts: 1},
		Tasks:   Tasks{Source: "builtin"},
		Sandbox: Sandbox{CommandTimeout: 60 * time.Second, VerifyTimeout: 5 * time.Minute, SetupTimeout: 20 * time.Minute, SetupCache: 20 << 30},
		Agent: Agent{
			Kind: "demonstrator", Tools: Tools("bash", "view", "grep", "listdir", "pdb", "edit", "eval", "submit"),
			MaxSteps: 60, MaxFormatErrors: 5, MaxRepeats: 4, Wall: 30 * time.Minute,
		},
		LLM:     defaultLLM(),
		S3:      S3{Checksum: "auto"},
		Publish: Publish{Selection: "success-v1"},
		Engine:  Engine{Lease: time.Minute},
	}
}
