package observe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env/shellwords"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// ReportVersion is the schema_version of summary.json.
const ReportVersion = "1"

// Verdicts of a run. The summary begins with one of them.
const (
	Complete    = "COMPLETE"
	WithGaps    = "COMPLETE WITH GAPS"
	OverBudget  = "STOPPED: budget"
	Stopped     = "STOPPED"
	Interrupted = "INTERRUPTED"
)

// Episode is one episode in the summary.
type Episode struct {
	ID         string         `json:"episode_id"`
	GroupID    string         `json:"group_id"`
	Instance   string         `json:"instance_id"`
	Attempt    int            `json:"attempt"`
	Outcome    string         `json:"outcome"`
	ExitReason string         `json:"exit_reason"`
	Cause      string         `json:"cause,omitempty"`
	Reused     bool           `json:"reused"`
	Resolved   *bool          `json:"resolved"`
	GoldUsed   bool           `json:"gold_used,omitempty"`
	Ending     string         `json:"ending,omitempty"`
	Steps      int            `json:"steps"`
	Turns      int            `json:"turns"`
	ToolErrors map[string]int `json:"tool_errors,omitempty"`
	Format     int            `json:"format_errors"`
	Retries    int            `json:"llm_retries"`
	Calls      schemas.Calls  `json:"calls"` // all model calls, including those that appear in no row
	Prompt     int64          `json:"prompt_tokens"`
	Completion int64          `json:"completion_tokens"`
	Cached     int64          `json:"cached_tokens"`
	Reasoning  int64          `json:"reasoning_tokens"`
	CostUSD    *float64       `json:"cost_usd"`
	Wall       time.Duration  `json:"wall_ns"`
	Redactions map[string]int `json:"redactions,omitempty"`
	Bytes      int64          `json:"staged_bytes"`
	Diverged   int            `json:"diverged,omitempty"`
	// FirstDiverged names the first replayed call whose observation differs from the recorded one.
	FirstDiverged string `json:"first_diverged,omitempty"`
}

// reason says why an episode ended.
func (e Episode) reason() string {
	if e.ExitReason == schemas.OutcomeCancelled {
		return "the run stopped"
	}
	return e.ExitReason
}

// FromStaged summarizes a staged episode. size is the size of the staged object in bytes.
func FromStaged(s sinks.Staged, size int64) Episode {
	r := s.Episode
	e := Episode{
		ID: r.EpisodeID, GroupID: r.GroupID, Instance: r.InstanceID, Attempt: int(r.Attempt), ExitReason: r.ExitReason,
		Resolved: r.Resolved, GoldUsed: r.GoldUsed, Ending: schemas.Value(r.Ending), Steps: int(r.NSteps), Turns: int(r.NTurns), CostUSD: r.CostUSD, Bytes: size,
		Prompt: schemas.Value(r.PromptTokens), Completion: schemas.Value(r.CompletionTokens), Cached: schemas.Value(r.CachedTokens),
		Reasoning: schemas.Value(r.ReasoningTokens), Format: int(schemas.Value(r.NFormatErrors)), Retries: int(schemas.Value(r.NRetries)),
		Wall: time.Duration(schemas.Value(r.WallMS)) * time.Millisecond, Outcome: schemas.Value(r.Outcome), Cause: schemas.Value(r.ErrorMessage), ToolErrors: map[string]int{},
	}
	e.Diverged = int(schemas.Value(r.NDiverged))
	if s.Calls != nil {
		e.Calls = *s.Calls
	}
	for _, step := range s.Steps {
		if r.FirstDivergedStep != nil && step.StepIndex == *r.FirstDivergedStep {
			e.FirstDiverged = strings.TrimSpace(fmt.Sprintf("step %d %s", step.StepIndex, schemas.Value(step.ToolName)))
		}
		if step.ToolName != nil && step.IsError != nil && *step.IsError {
			e.ToolErrors[*step.ToolName]++
		}
	}
	if r.RedactionsJSON != nil {
		_ = json.Unmarshal([]byte(*r.RedactionsJSON), &e.Redactions) // an invalid value counts as none
	}
	return e
}

// Missing is a selected job without an episode.
type Missing struct {
	ID       string `json:"episode_id"`
	Instance string `json:"instance_id"`
	Attempt  int    `json:"attempt"`
	Reason   string `json:"reason"`
}

// Ledger accounts for every selected job:
// selected = reused + ran + missing, ran = the sum of its outcomes.
type Ledger struct {
	Selected int            `json:"selected"`
	Reused   int            `json:"reused"`
	Ran      int            `json:"ran"`
	Missing  int            `json:"missing"`
	Outcomes map[string]int `json:"outcomes"` // of the episodes that ran
	// Unselected counts the staged episodes of tasks and attempts that only earlier invocations
	// selected. They are not part of Selected, but publishing includes them.
	Unselected int `json:"unselected"`
}

// Report is the result of a run. Summarise computes most of it.
type Report struct {
	SchemaVersion string    `json:"schema_version"`
	Verdict       string    `json:"verdict"`
	ExitCode      int       `json:"exit_code"`
	RunID         string    `json:"run_id"`
	RunDir        string    `json:"run_dir"`
	Log           string    `json:"log"`
	Command       []string  `json:"command,omitempty"` // started the run; Next contains variants of it
	FlagToRaise   string    `json:"-"`                 // the flag to raise before running again
	Started       time.Time `json:"started"`
	Ended         time.Time `json:"ended"`
	Error         string    `json:"error,omitempty"` // why the run stopped early
	Hint          string    `json:"hint,omitempty"`

	Ledger  Ledger    `json:"ledger"`
	Missing []Missing `json:"missing"`
	Outcome Outcome   `json:"outcome"`
	Effort  Effort    `json:"effort"`
	// Calls counts the model calls of the whole run, including those of unfinished episodes and of
	// earlier processes.
	Calls    schemas.Calls `json:"calls"`
	Friction Friction      `json:"friction"`
	Data     Data          `json:"data"`
	Next     []string      `json:"next"`
	Episodes []Episode     `json:"episodes"`
}

// Outcome covers all episodes of the run, including reused ones.
type Outcome struct {
	Episodes      int     `json:"episodes"`
	Verified      int     `json:"verified"` // with a verdict
	Resolved      int     `json:"resolved"`
	ResolvedGold  int     `json:"resolved_gold_used"` // by a policy that could see the gold patch; not part of Resolved
	Derived       int     `json:"resolved_derived"`   // part of ResolvedGold: by an edit that does not come from the gold patch
	ResolvedRate  float64 `json:"resolved_rate"`      // share of the verified episodes
	Tasks         int     `json:"tasks"`
	ResolvedTasks int     `json:"resolved_tasks"` // by at least one attempt
}

// Effort is the time, tokens and cost of all episodes, including reused ones.
type Effort struct {
	Steps           Spread   `json:"steps"`
	WallSeconds     Spread   `json:"wall_seconds"`
	Tokens          int64    `json:"tokens"`
	PromptTokens    int64    `json:"prompt_tokens"`
	CachedTokens    int64    `json:"cached_tokens"`
	ReasoningTokens int64    `json:"reasoning_tokens"`
	CostUSD         *float64 `json:"cost_usd"`      // nil: unknown for at least one episode
	SpentNowUSD     float64  `json:"spent_now_usd"` // by this invocation
}

// Spread describes the distribution of one quantity.
type Spread struct {
	Sum float64 `json:"sum"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Friction counts the problems during the run.
type Friction struct {
	InfraRetries  int            `json:"infra_retries"`
	FormatErrors  int            `json:"format_errors"`
	ToolErrors    map[string]int `json:"tool_errors"`
	Diverged      int            `json:"diverged"` // replayed calls with a different observation
	FirstDiverged string         `json:"first_diverged,omitempty"`
	Adopted       int            `json:"adopted"` // episodes that another worker staged first
}

// Data describes the staged data.
type Data struct {
	Staging    string         `json:"staging"`
	Episodes   int            `json:"episodes"`
	Rows       int            `json:"rows"`
	Bytes      int64          `json:"bytes"`
	Redactions map[string]int `json:"redactions"`
}

// Summarise computes all other fields from the episodes, the missing jobs and the way
// the run ended. Dead and canceled episodes count only in the ledger.
func (r *Report) Summarise() {
	r.SchemaVersion = ReportVersion
	slices.SortFunc(r.Episodes, func(a, b Episode) int {
		if a.Instance != b.Instance {
			return cmp.Compare(a.Instance, b.Instance)
		}
		return a.Attempt - b.Attempt
	})
	r.Ledger = Ledger{Selected: len(r.Episodes) + len(r.Missing), Missing: len(r.Missing), Outcomes: map[string]int{}, Unselected: r.Ledger.Unselected}
	r.Friction.ToolErrors, r.Data.Redactions = map[string]int{}, map[string]int{}
	r.Outcome, r.Effort.CostUSD = Outcome{}, new(0.0)
	tasks, resolved := map[string]bool{}, map[string]bool{}
	var steps, walls []float64
	for _, e := range r.Episodes {
		if e.Reused {
			r.Ledger.Reused++
		} else {
			r.Ledger.Ran++
			r.Ledger.Outcomes[e.Outcome]++
		}
		if e.Outcome == schemas.OutcomeInfra || e.Outcome == schemas.OutcomeCancelled {
			continue
		}
		tasks[e.GroupID] = true
		r.Outcome.Episodes++
		if e.Resolved != nil {
			r.Outcome.Verified++
			switch {
			case *e.Resolved && e.GoldUsed:
				r.Outcome.ResolvedGold++
				if e.Ending == schemas.EndingEdit {
					r.Outcome.Derived++
				}
			case *e.Resolved:
				r.Outcome.Resolved++
				resolved[e.GroupID] = true
			}
		}
		steps, walls = append(steps, float64(e.Steps)), append(walls, e.Wall.Seconds())
		r.add(e)
	}
	if r.Outcome.Verified > 0 {
		r.Outcome.ResolvedRate = float64(r.Outcome.Resolved) / float64(r.Outcome.Verified)
	}
	r.Outcome.Tasks, r.Outcome.ResolvedTasks = len(tasks), len(resolved)
	r.Effort.Steps, r.Effort.WallSeconds = spread(steps), spread(walls)
	r.setVerdict()
}

func (r *Report) add(e Episode) {
	r.Effort.Tokens += e.Prompt + e.Completion
	r.Effort.PromptTokens += e.Prompt
	r.Effort.CachedTokens += e.Cached
	r.Effort.ReasoningTokens += e.Reasoning
	if e.CostUSD == nil {
		r.Effort.CostUSD = nil
	} else if r.Effort.CostUSD != nil {
		*r.Effort.CostUSD += *e.CostUSD
	}
	r.Friction.FormatErrors += e.Format
	r.Friction.Diverged += e.Diverged
	if r.Friction.FirstDiverged == "" && e.Diverged > 0 {
		r.Friction.FirstDiverged = e.Instance + ", " + e.FirstDiverged
	}
	for tool, n := range e.ToolErrors {
		r.Friction.ToolErrors[tool] += n
	}
	r.Data.Episodes++
	r.Data.Rows += e.Steps
	r.Data.Bytes += e.Bytes
	for kind, n := range e.Redactions {
		r.Data.Redactions[kind] += n
	}
}

// setVerdict sets the verdict, the exit code and the next commands. It keeps a verdict that
// is already set (stopped, interrupted).
func (r *Report) setVerdict() {
	infra := r.Ledger.Outcomes[schemas.OutcomeInfra]
	if r.Verdict == "" {
		r.Verdict, r.ExitCode = Complete, 0
		if infra+r.Ledger.Outcomes[schemas.OutcomeCancelled]+r.Ledger.Missing > 0 {
			r.Verdict, r.ExitCode = WithGaps, 3
		}
	}
	r.Next = r.FailureCommands()
	if r.Outcome.Episodes > 0 {
		r.Next = append(r.Next, shellwords.Command("tracesmith", "show", r.RunDir), shellwords.Command("tracesmith", "publish", r.RunDir, "--to", "out/dataset"))
	}
}

// FailureCommands returns the commands that resume the run, retry its failures or show them. They
// are the part of Next that also applies if the run is published immediately.
func (r *Report) FailureCommands() []string {
	var next []string
	switch {
	case r.FlagToRaise != "":
		next = append(next, r.resumeCommand(r.FlagToRaise, "HIGHER"))
	case r.Verdict != Complete && r.Verdict != WithGaps:
		next = append(next, r.resumeCommand())
	case r.Verdict == WithGaps:
		next = append(next, r.resumeCommand("--retry", "infra"))
	}
	if r.Ledger.Outcomes[schemas.OutcomeInfra] > 0 {
		next = append(next, shellwords.Command("cat", r.RunDir+"/dead-letters.jsonl")+"   # why they failed")
	}
	for _, e := range r.Episodes {
		switch e.Outcome {
		case schemas.OutcomeUnresolved, schemas.OutcomeLimit, schemas.OutcomeAgentError:
			return append(next, fmt.Sprintf("%s   # %s: why", shellwords.Command("tracesmith", "show", r.RunDir, e.ID[:min(12, len(e.ID))]), e.Outcome))
		}
	}
	return next
}

func spread(v []float64) Spread {
	if len(v) == 0 {
		return Spread{}
	}
	slices.Sort(v)
	at := func(q float64) float64 { return v[min(len(v)-1, int(q*float64(len(v))))] }
	s := Spread{P50: at(0.5), P90: at(0.9), P99: at(0.99), Max: v[len(v)-1]}
	for _, x := range v {
		s.Sum += x
	}
	return s
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func counts(m map[string]int) string {
	var parts []string
	for _, k := range sorted(m) {
		parts = append(parts, k+" "+Number(m[k]))
	}
	return strings.Join(parts, ", ")
}

// resumeCommand returns the command that resumes the run: the command that started it, without
// --fresh, --retry and the flags in more, followed by more.
func (r *Report) resumeCommand(more ...string) string {
	command := r.Command
	if len(command) == 0 {
		command = []string{"tracesmith", "run", "-c", "FILE", "--run-dir", r.RunDir}
	}
	dropped := append([]string{"--retry"}, more...)
	var words []string
	for i := 0; i < len(command); i++ {
		flag, _, hasValue := strings.Cut(command[i], "=")
		switch {
		case flag == "--fresh":
		case strings.HasPrefix(flag, "--") && slices.Contains(dropped, flag):
			if !hasValue { // the value is the next word
				i++
			}
		default:
			words = append(words, command[i])
		}
	}
	return shellwords.Command(append(words, more...)...)
}
