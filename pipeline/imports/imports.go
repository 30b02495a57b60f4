// Package imports reads trajectories of other tools into rows of ours: one file
// per format. What a file does not say is null; what it claims about success is
// kept as a claim, never as a verdict.
package imports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// MaxBytes is how large a file may be.
const MaxBytes = 256 << 20

// parsers by the name of the format. Each takes the file's base name and content;
// errors say where in the file.
var parsers = map[string]func(name string, raw []byte) (*record, error){
	"debug-gym":      parseDebugGym,
	"swe-agent":      parseSWEAgent,
	"mini-swe-agent": parseMiniSWE,
	"atif":           parseATIF,
}

// Formats lists the names that Read takes.
func Formats() []string { return slices.Sorted(maps.Keys(parsers)) }

// record is a trajectory as far as its file says.
type record struct {
	harness, agent, version, model string
	instance, problem, runID       string
	session, style                 string
	task                           schemas.Task // what else is known of it; Source is where it was first from
	policy                         string       // "": model
	goldUsed                       bool
	tools                          []schemas.ToolSchema
	steps                          []schemas.Step
	patch                          string
	exit                           string // one of ours, "" if not known
	claim                          *bool  // what the file says about success
	claimedBy                      string // where it says so
	config                         json.RawMessage
	cost                           *float64
}

// Read turns one file into a staged episode. modified stands in for the time of
// an episode that names none. cfg redacts as it does for episodes of our own.
func Read(format, name string, raw []byte, modified time.Time, cfg normalise.Config) (sinks.Staged, error) {
	parse, ok := parsers[format]
	if !ok {
		return sinks.Staged{}, fmt.Errorf("unknown format %q: choose one of %s", format, strings.Join(Formats(), ", "))
	}
	if len(raw) > MaxBytes {
		return sinks.Staged{}, fmt.Errorf("%s: it has %d bytes, more than %d", name, len(raw), MaxBytes)
	}
	r, err := parse(name, raw)
	if err != nil {
		return sinks.Staged{}, fmt.Errorf("%s: %w", name, err)
	}
	if !slices.ContainsFunc(r.steps, func(s schemas.Step) bool { return s.Source == "agent" }) {
		return sinks.Staged{}, fmt.Errorf("%s: no step of an agent in it: is it a %s trajectory?", name, format)
	}
	ep, err := r.episode(format, name, raw, modified)
	if err != nil {
		return sinks.Staged{}, fmt.Errorf("%s: %w", name, err)
	}
	out, err := normalise.Episode(ep, cfg)
	if err != nil {
		return sinks.Staged{}, fmt.Errorf("%s: %w", name, err)
	}
	out.Episode.TaskSource = "import/" + format
	r.forget(&out, ep)
	return out, nil
}

// episode is the record in our own form, ids by content: the same file is the same
// episode.
func (r *record) episode(format, name string, raw []byte, modified time.Time) (*schemas.Episode, error) {
	sum := schemas.HashBytes(raw)
	config := map[string]any{"import": map[string]string{"format": format, "file": name, "sha256": sum}}
	if len(r.config) > 0 && string(r.config) != "null" {
		config["config"] = r.config
	}
	text, err := schemas.CanonicalJSON(config)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	agent, task := cmp.Or(r.agent, r.harness), r.task
	task.Source, task.Instructions = cmp.Or(task.Source, "import/"+format), r.problem
	task.InstanceID = cmp.Or(r.instance, strings.TrimSuffix(name, ".json"))
	if task.Repo == "" { // what an id says decides the split, as the name itself would
		task.Repo = provenance.Named(task.InstanceID)
	}
	ep := &schemas.Episode{
		Job: schemas.Job{
			EpisodeID: schemas.ShortHash([]string{"import", format, sum}), RunID: cmp.Or(r.runID, "import-"+format),
			GroupID: schemas.ShortHash([]string{"import", format, r.instance, agent, r.model}),
		},
		Task: task,
		Agent: schemas.AgentInfo{
			Name: agent, Version: r.version, Policy: cmp.Or(r.policy, "model"), GoldUsed: r.goldUsed, Model: cmp.Or(r.model, "unknown"), ConfigJSON: string(text),
			ToolCallStyle: r.style,
		},
		Tools: r.tools, Steps: r.steps, Patch: []byte(r.patch), ExitReason: r.exit,
		Verdict: schemas.Verdict{Status: schemas.VerifyNotRun},
	}
	ep.Started, ep.Ended = modified, modified
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

func times(steps []schemas.Step) []time.Time {
	var out []time.Time
	for _, s := range steps {
		if !s.At.IsZero() {
			out = append(out, s.At)
		}
	}
	return out
}

// forget takes out what normalising fills in for episodes of our own and nobody
// knows of this one.
func (r *record) forget(out *sinks.Staged, ep *schemas.Episode) {
	e := &out.Episode
	e.Harness, e.HarnessVersion, e.HarnessCommit = r.harness, text(r.version), nil
	e.SessionID = text(r.session)
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
	if r.claim != nil {
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
			s.IsError = nil // nobody says
		}
		if from.Reply != nil && from.Reply.CostUSD == nil {
			s.CostUSD = nil
		}
		s.ContextOp = nil
		s.CachedTokens, s.ReasoningTokens = stated(s.CachedTokens), stated(s.ReasoningTokens)
	}
	e.NErrors = nil
	e.CachedTokens, e.ReasoningTokens = stated(e.CachedTokens), stated(e.ReasoningTokens)
	if slices.ContainsFunc(ep.Steps, func(s schemas.Step) bool { return s.Reply != nil && s.Reply.Usage == nil }) {
		e.PromptTokens, e.CompletionTokens, e.CachedTokens, e.ReasoningTokens, e.MaxPromptTokens = nil, nil, nil, nil, nil
	}
}

// stated is a number that a file gives; where it gives none, reading leaves 0.
func stated(n *int64) *int64 {
	if n == nil || *n == 0 {
		return nil
	}
	return n
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// lenient is a value that may as well be something else, which is nothing then.
type lenient[T any] struct{ is T }

func (l *lenient[T]) UnmarshalJSON(raw []byte) error {
	var v T
	if json.Unmarshal(raw, &v) == nil {
		l.is = v
	}
	return nil
}

// decode reads one JSON value and nothing behind it. An error names the place.
func decode(raw []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if err := dec.Decode(to); err != nil {
		return place(raw, err, dec.InputOffset())
	}
	if dec.More() {
		return fmt.Errorf("line %d: more than one JSON value", lineOf(raw, dec.InputOffset()))
	}
	return nil
}

func place(raw []byte, err error, at int64) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		at = int64(len(raw))
	}
	switch e := err.(type) {
	case *json.UnmarshalTypeError:
		article := "a"
		if strings.HasPrefix(e.Value, "array") || strings.HasPrefix(e.Value, "object") {
			article = "an"
		}
		return fmt.Errorf("line %d: %s is %s %s, which it must not be", lineOf(raw, e.Offset), cmp.Or(e.Field, "the file"), article, e.Value)
	case *json.SyntaxError:
		at = e.Offset
	}
	return fmt.Errorf("line %d: it is no JSON, or damaged: %w", lineOf(raw, at), err)
}

func lineOf(raw []byte, at int64) int {
	return 1 + bytes.Count(raw[:min(max(at, 0), int64(len(raw)))], []byte("\n"))
}
