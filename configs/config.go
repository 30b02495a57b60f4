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
	Version int     `mapstructure:"version" json:"version"` // version of this format; only 1 exists
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

	Places      Places   `mapstructure:"-" json:"-"` // where each setting was written
	RenameNotes []string `mapstructure:"-" json:"-"` // a note for each value that has a new name
}

// Run configures the name, the directories and the parallelism of a run.
type Run struct {
	Name string `mapstructure:"name" json:"name"` // name of the batch; run ids begin with it
	// Run directory, which identifies the run: the same directory resumes the run. --run-dir takes
	// precedence.
	Dir      string `mapstructure:"dir" json:"dir"`
	Workers  int    `mapstructure:"workers" json:"workers"`   // number of episodes that run at once
	Attempts int    `mapstructure:"attempts" json:"attempts"` // number of episodes for each task
	// Maximum number of sandboxes of one kind that this process starts concurrently; 0 = limited
	// only by run.workers.
	Starts int `mapstructure:"starts" json:"starts,omitempty"`
	// Maximum number of test runs, for verdicts and baselines, that this process makes
	// concurrently; 0 = limited only by run.workers.
	Gradings int `mapstructure:"gradings" json:"gradings,omitempty"`
	// Compare the values that the debugger prints with those of the fixed program. It fills columns such as
	// gold_evidence_differs and costs test runs: about six for each task and two for each episode.
	GoldTraces bool `mapstructure:"gold_traces" json:"gold_traces,omitempty"`
	// Where finished episodes are kept: a directory or s3://bucket/prefix, with one folder for
	// each run. Unset: the run directory.
	Staging string `mapstructure:"staging" json:"staging,omitempty"`
}

// NATS is the cluster that distributes jobs. Without a URL, the engine runs inside the process.
type NATS struct {
	// Addresses of the cluster that hands out jobs, separated by commas. Unset: the process hands
	// them out itself. --nats takes precedence.
	URL      string `mapstructure:"url"`
	Creds    string `mapstructure:"creds"`    // file with the JWT and the seed of a user
	Replicas int    `mapstructure:"replicas"` // copies of stored data; 0 = 3 if the cluster has three nodes or more
	TLS      TLS    `mapstructure:"tls"`
}

// TLS names PEM files.
type TLS struct {
	// PEM file of the CA that signed the certificates of the servers. Unset: the CAs of the
	// system.
	CA   string `mapstructure:"ca"`
	Cert string `mapstructure:"cert"` // PEM file of the client certificate, if the servers ask for one
	Key  string `mapstructure:"key"`  // PEM file of its key
}

// Engine configures the distribution of jobs.
type Engine struct {
	Lease    time.Duration `mapstructure:"lease" json:"lease"`                   // time after which a silent worker loses its job
	InFlight int           `mapstructure:"in_flight" json:"in_flight,omitempty"` // maximum number of concurrent jobs of all workers of a cluster; 0 = as many as the workers take
}

// Tasks selects the tasks: a source (env.Sources), its settings and filters.
type Tasks struct {
	Source string   `mapstructure:"source" json:"source"`           // where tasks come from; see tasks.with
	With   Block    `mapstructure:"with" json:"with,omitempty"`     // settings of the source
	IDs    []string `mapstructure:"ids" json:"ids,omitempty"`       // instance ids to select; unset = all
	Filter string   `mapstructure:"filter" json:"filter,omitempty"` // regular expression that selects instance ids
	// Levels of difficulty to select, T0 to T4, measured without the fix; unset = all.
	Difficulty []string `mapstructure:"difficulty" json:"difficulty,omitempty"`
	// Levels of difficulty to select, T0 to T4, measured with the fix; unset = all.
	GoldDifficulty []string `mapstructure:"gold_difficulty" json:"gold_difficulty,omitempty"`
	// A part of the selected tasks: from:to, by position from 0; either number may be left out.
	Slice string `mapstructure:"slice" json:"slice,omitempty"`
}

// Sandbox selects the sandbox driver. Kind "" means bubblewrap, or docker for tasks
// that name an image. With holds the settings of the driver.
type Sandbox struct {
	// Sandbox driver; unset = bubblewrap, or docker for tasks that name an image.
	Kind  string `mapstructure:"kind" json:"kind"`
	With  Block  `mapstructure:"with" json:"with,omitempty"`   // settings of the driver
	Image string `mapstructure:"image" json:"image,omitempty"` // container image; it replaces those that tasks name
	// Interpreter of the host that sandboxes use, as a path or a version; unset = the one that the
	// task names, else python3 of the system.
	Python         string        `mapstructure:"python" json:"python,omitempty"`
	Memory         ByteSize      `mapstructure:"memory" json:"memory,omitempty"`           // limit for the programs of a sandbox; 0 = 2GiB, -1 = no limit
	Disk           ByteSize      `mapstructure:"disk" json:"disk,omitempty"`               // limit for the files that programs write; 0 = 1GiB, -1 = no limit
	Processes      int           `mapstructure:"processes" json:"processes,omitempty"`     // limit for processes and threads; 0 = 256, -1 = no limit
	CPUs           float64       `mapstructure:"cpus" json:"cpus,omitempty"`               // limit in cores; 0 = 2, -1 = no limit
	CommandTimeout time.Duration `mapstructure:"command_timeout" json:"command_timeout"`   // time limit of one tool call
	VerifyTimeout  time.Duration `mapstructure:"verify_timeout" json:"verify_timeout"`     // time limit of one test run for a verdict or a baseline
	SetupTimeout   time.Duration `mapstructure:"setup_timeout" json:"setup_timeout"`       // time limit of the setup commands of a task
	SetupCache     ByteSize      `mapstructure:"setup_cache" json:"setup_cache,omitempty"` // total size of cached setup results; the oldest are removed. 0 = no limit
}

// Agent is a policy (agents.Registry), its settings, its tools and its limits.
type Agent struct {
	Kind            string  `mapstructure:"kind" json:"kind"`           // agent; see agent.with
	With            Block   `mapstructure:"with" json:"with,omitempty"` // settings of the agent
	Tools           []Tool  `mapstructure:"tools" json:"tools"`         // tools that the agent gets
	Prompts         Prompts `mapstructure:"prompts" json:"prompts,omitzero"`
	MaxSteps        int     `mapstructure:"max_steps" json:"max_steps"`                 // turns after which an episode ends
	MaxFormatErrors int     `mapstructure:"max_format_errors" json:"max_format_errors"` // consecutive turns without a readable call after which an episode ends
	// How many times in a row the same call, or the same sequence of two or three calls, may give
	// the same answers before the episode ends.
	MaxRepeats int `mapstructure:"max_repeats" json:"max_repeats"`
	// Length of the conversation in tokens at which an episode ends; 0 = no limit.
	MaxPromptTokens int64         `mapstructure:"max_prompt_tokens" json:"max_prompt_tokens,omitempty"`
	Wall            time.Duration `mapstructure:"wall" json:"wall"` // time after which an episode ends
}

// Prompts are template files that replace the agent's own prompts; "" = the agent's own.
type Prompts struct {
	System       string `mapstructure:"system" json:"system,omitempty"`               // template file that replaces the agent's system prompt
	Problem      string `mapstructure:"problem" json:"problem,omitempty"`             // template file that replaces the agent's first message
	SolveSystem  string `mapstructure:"solve_system" json:"solve_system,omitempty"`   // the same for the second conversation, which agent seeker has
	SolveProblem string `mapstructure:"solve_problem" json:"solve_problem,omitempty"` // the same for the second conversation
}

// Limits are the maximum costs of models, in USD, of all workers of a cluster
// together; 0 = no limit.
type Limits struct {
	// USD for the whole run, over all workers. The run stops at this limit and can be resumed with
	// a higher one. 0 = no limit.
	TotalCost   float64 `mapstructure:"total_cost" json:"total_cost,omitempty"`
	TaskCost    float64 `mapstructure:"task_cost" json:"task_cost,omitempty"`       // USD for all attempts at one task, which end at this limit. 0 = no limit
	EpisodeCost float64 `mapstructure:"episode_cost" json:"episode_cost,omitempty"` // USD for one attempt, which ends at this limit. 0 = no limit
}

// Any reports whether there is a limit.
func (l Limits) Any() bool { return l.TotalCost > 0 || l.TaskCost > 0 || l.EpisodeCost > 0 }

// Price is the price of a model in USD per million tokens. Prices are a list because
// viper cannot use model names, with their dots and capitals, as keys.
type Price struct {
	Model string  `mapstructure:"model" json:"model"` // name of the model, as the server calls it
	Input float64 `mapstructure:"input" json:"input"` // USD per million tokens of prompts
	// USD per million tokens that the server reads from its prompt cache; unset = input, for
	// provider anthropic 0.1 times input.
	Cached *float64 `mapstructure:"cached" json:"cached,omitempty"`
	// USD per million tokens that the server writes to its prompt cache; unset = 1.25 times input.
	CacheWrite   *float64 `mapstructure:"cache_write" json:"cache_write,omitempty"`
	CacheWrite1h *float64 `mapstructure:"cache_write_1h" json:"cache_write_1h,omitempty"` // USD per million tokens that the server writes to its prompt cache and keeps for an hour; unset = 2 times input
	Output       float64  `mapstructure:"output" json:"output"`                           // USD per million tokens of answers
	Free         bool     `mapstructure:"free" json:"free,omitempty"`                     // the model costs nothing
}

// S3 holds the settings of S3-compatible stores. Credentials come from the AWS
// environment variables and files.
type S3 struct {
	Endpoint string `mapstructure:"endpoint" json:"endpoint,omitempty"` // address of a server that is not AWS
	Region   string `mapstructure:"region" json:"region,omitempty"`     // region; unset = AWS_REGION, else us-east-1
	// Write the bucket into the path instead of the host name; endpoint implies it.
	PathStyle bool   `mapstructure:"path_style" json:"path_style,omitempty"`
	Checksum  string `mapstructure:"checksum" json:"checksum,omitempty"` // whether uploads carry a CRC32: auto or off
}

// Publish, if To is set, makes the command run publish its episodes.
type Publish struct {
	// Where run publishes its episodes: a directory or s3://bucket/prefix; unset = nowhere.
	To              string   `mapstructure:"to" json:"to,omitempty"`
	Name            string   `mapstructure:"name" json:"name,omitempty"`                         // name of the dataset in its card
	Selection       string   `mapstructure:"selection" json:"selection,omitempty"`               // which episodes are kept: the name of a recipe, or its file
	BenchmarkHashes []string `mapstructure:"benchmark_hashes" json:"benchmark_hashes,omitempty"` // files that "tasks hashes" wrote, with which published episodes are compared
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
			Kind: "oracle", Tools: Tools("bash", "view", "grep", "listdir", "pdb", "edit", "eval", "submit"),
			MaxSteps: 60, MaxFormatErrors: 5, MaxRepeats: 4, Wall: 30 * time.Minute,
		},
		LLM:     defaultLLM(),
		S3:      S3{Checksum: "auto"},
		Publish: Publish{Selection: "success-v1"},
		Engine:  Engine{Lease: time.Minute},
	}
}
