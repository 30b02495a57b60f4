package imports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// record holds the content of a trajectory file. Zero values are unknown.
type record struct {
	harness, agent, version, model string
	instance, problem, runID       string
	session, style                 string
	task                           schemas.Task // other known fields; Source is the original source
	policy                         string       // "" stands for "model"
	goldUsed                       bool
	tools                          []schemas.ToolSchema
	steps                          []schemas.Step
	patch                          string
	exit                           string // a key of schemas.Exits, or "" if unknown
	claim                          *bool  // the claim of success in the file
	claimedBy                      string // the field that contains the claim
	config                         json.RawMessage
	cost                           *float64
}

// nonZero returns nil if n is 0, because the file does not contain the number then.
func nonZero(n *int64) *int64 {
	if n == nil || *n == 0 {
		return nil
	}
	return n
}

// nonEmpty returns a pointer to s, or nil if s is empty.
func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func times(steps []schemas.Step) []time.Time {
	var out []time.Time
	for _, s := range steps {
		if !s.At.IsZero() {
			out = append(out, s.At)
		}
	}
	return out
}

// origin is the place of a trajectory.
type origin struct {
	file     string // File.Name
	row      string // of a file with many trajectories, such as "row 3"
	modified time.Time
}

// source returns the entry of config_json about the place of a trajectory, and the hash that
// determines the episode's ID. The hash of a row does not depend on spaces, on the order of keys and
// on keys that are null, so that a dataset has the same episodes as JSON lines and as Parquet.
func (o origin) source(format string, raw []byte) (entry map[string]string, sum string, err error) {
	entry = map[string]string{"format": format, "file": o.file}
	if o.row != "" {
		var value any
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(&value); err != nil {
			return nil, "", err
		}
		if raw, err = schemas.CanonicalJSON(withoutNulls(value)); err != nil {
			return nil, "", err
		}
		entry["row"] = o.row
	}
	sum = schemas.HashBytes(raw)
	entry["sha256"] = sum
	return entry, sum, nil
}

// withoutNulls returns a value without the keys whose values are null, or numbers that JSON cannot
// represent, such as the NaN that pandas writes for null.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	case map[string]any:
		for name := range v {
			if v[name] = withoutNulls(v[name]); v[name] == nil {
				delete(v, name)
			}
		}
	}
	return v
}

// instance returns the ID of the instance if the trajectory has none.
func (o origin) instance() string {
	name := strings.TrimSuffix(path.Base(o.file), ".json")
	if o.row != "" {
		name += " " + o.row
	}
	return name
}

// episode converts the record into an episode. Its IDs are derived from the content of the
// trajectory, so that importing it twice gives the same episode.
func (r *record) episode(format string, raw []byte, from origin) (*schemas.Episode, error) {
	entry, sum, err := from.source(format, raw)
	if err != nil {
		return nil, err
	}
	config := map[string]any{"import": entry}
	if len(r.config) > 0 && string(r.config) != "null" {
		config["config"] = r.config
	}
	configJSON, err := schemas.CanonicalJSON(config)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	agent, task := cmp.Or(r.agent, r.harness), r.task
	task.Source, task.Instructions = cmp.Or(task.Source, "import/"+format), r.problem
	task.InstanceID = cmp.Or(r.instance, from.instance())
	if task.Repo == "" { // derive the repository, which determines the split, from the ID
		task.Repo = provenance.RepoOfInstance(task.InstanceID)
	}
	ep := &schemas.Episode{
		Job: schemas.Job{
			EpisodeID: schemas.ShortHash([]string{"import", format, sum}), RunID: cmp.Or(r.runID, "import-"+format),
			GroupID: schemas.ShortHash([]string{"import", format, task.InstanceID, agent, r.model}),
		},
		Task: task,
		Agent: schemas.AgentInfo{
			Name: agent, Version: r.version, Policy: cmp.Or(r.policy, "model"), GoldUsed: r.goldUsed, Model: cmp.Or(r.model, "unknown"), ConfigJSON: string(configJSON),
			ToolCallStyle: r.style,
		},
		Tools: r.tools, Steps: r.steps, Patch: []byte(r.patch), ExitReason: r.exit,
		Verdict: schemas.Verdict{Status: schemas.VerifyNotRun},
	}
	ep.Started, ep.Ended = from.modified, from.modified
	if at := times(r.steps); len(at) > 0 {
		ep.Started, ep.Ended = slices.MinFunc(at, time.Time.Compare), slices.MaxFunc(at, time.Time.Compare)
	}
	for i := range ep.Steps {
		ep.Steps[i].Index = i
		name := ep.Steps[i].Phase
		if name != "" && !slices.ContainsFunc(ep.Agent.Phases, func(p schemas.PhaseInfo) bool { return p.Name == name }) {
			ep.Agent.Phases = append(ep.Agent.Phases, schemas.PhaseInfo{Name: name})
		}
	}
	return ep, nil
}

// clearUnknown clears the columns that normalizing fills for recorded episodes but that are unknown
// for imported ones.
func (r *record) clearUnknown(out *sinks.Staged, ep *schemas.Episode) {
	e := &out.Episode
	e.Harness, e.HarnessVersion, e.HarnessCommit = r.harness, nonEmpty(r.version), nil
	e.SessionID = nonEmpty(r.session)
	e.Seed, e.QueueMS, e.EnvMS, e.EnvKey, e.TaskKey, e.AgentKey = nil, nil, nil, nil, nil, nil
	e.HistoryStripped, e.ContextTrimmed, e.NRetries, e.LLMMS = nil, nil, nil, nil
	e.CostUSD, e.PriceTable = r.cost, nil
	if len(times(ep.Steps)) == 0 {
		e.EndedAt, e.WallMS = nil, nil
	}
	if r.problem == "" {
		e.ProblemStatement, e.ProblemSHA256 = nil, nil
	}
	if len(r.tools) == 0 {
		e.ToolSetSHA256, e.ToolNames = nil, nil
	}
	if r.exit == "" {
		e.ExitReason, e.TerminationClass, e.Outcome = "unknown", "unknown", new(schemas.OutcomeUnverified)
	}
	if e.TerminationClass == "budget" && !schemas.Value(r.claim) {
		e.Outcome = new(schemas.OutcomeLimit)
	}
	if r.claim != nil {
		e.ClaimedResolved = r.claim
		e.VerifyMethod, e.VerifyReason = &r.claimedBy, new(fmt.Sprintf("%s says %t; nothing was verified here", r.claimedBy, *r.claim))
	}
	for i := range out.Steps {
		s, from := &out.Steps[i], ep.Steps[i]
		if from.At.IsZero() {
			s.TS = nil
		}
		s.TerminationClass = &e.TerminationClass
		s.EnvMS, s.Replayed = nil, nil
		if !from.Synthetic {
			s.Synthetic = nil
		}
		s.LLMCallCount, s.LLMRetries, s.LLMMS, s.ArgumentsRepaired = nil, nil, nil, nil
		if o := from.Observation; o != nil && !o.IsError && o.ExitCode == nil {
			s.IsError = nil // unknown
		}
		if from.Reply != nil && from.Reply.CostUSD == nil {
			s.CostUSD = nil
		}
		s.ContextOp = nil
		if schemas.Value(s.ToolCategory) == "edit" {
			s.FilesChanged = nil // only tools of tracesmith report them
		}
		s.CachedTokens, s.ReasoningTokens = nonZero(s.CachedTokens), nonZero(s.ReasoningTokens)
	}
	e.NErrors = nil
	e.CachedTokens, e.ReasoningTokens = nonZero(e.CachedTokens), nonZero(e.ReasoningTokens)
	if slices.ContainsFunc(ep.Steps, func(s schemas.Step) bool { return s.Reply != nil && s.Reply.Usage == nil }) {
		e.PromptTokens, e.CompletionTokens, e.CachedTokens, e.ReasoningTokens, e.MaxPromptTokens = nil, nil, nil, nil, nil
	}
}
