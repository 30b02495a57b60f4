package imports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

type sweAgentFile struct {
	Trajectory []sweStep       `json:"trajectory"`
	History    []chatMessage   `json:"history"`
	Info       sweInfo         `json:"info"`
	Config     json.RawMessage `json:"replay_config"`
}

type sweStep struct {
	Action      *string       `json:"action"`
	Observation *string       `json:"observation"`
	Response    *string       `json:"response"`
	Thought     *string       `json:"thought"`
	Query       []chatMessage `json:"query"`
}

type sweInfo struct {
	ExitStatus string          `json:"exit_status"`
	Submission *string         `json:"submission"`
	Config     json.RawMessage `json:"config"`
	Version    string          `json:"mini_version"`
	SWEVersion string          `json:"swe_agent_version"`
	ModelStats struct {
		Cost *float64 `json:"instance_cost"`
	} `json:"model_stats"`
}

// parseSWEAgent reads a .traj file (see docs/usage/trajectories.md of SWE-agent). If the file has a
// history, which contains the original calls, parseSWEAgent reads that, followed by the steps that
// only the trajectory contains. Otherwise it reads the trajectory, with each action as a bash
// command.
func parseSWEAgent(name string, raw []byte) (*record, error) {
	var f sweAgentFile
	if err := decode(raw, &f); err != nil {
		return nil, err
	}
	if f.Trajectory == nil && f.History == nil {
		return nil, fmt.Errorf("trajectory and history are missing: the file is not a SWE-agent trajectory")
	}
	r := &record{harness: "swe-agent", instance: stem(name), version: f.Info.SWEVersion, config: f.Config}
	f.Info.copyTo(r)
	if len(f.Config) > 0 && f.Config[0] == '"' { // some versions write a string instead of an object
		r.config = nil
	}
	opening, where, rest := f.History, "history", f.afterHistory()
	if len(opening) == 0 && len(f.Trajectory) > 0 {
		opening, where, rest = f.Trajectory[0].Query, "trajectory[0].query", f.Trajectory
		for i := range opening { // the model was shown these messages before its first step; it did not write them
			opening[i].Demo = true
		}
	}
	b := &builder{seen: map[string]bool{}}
	var err error
	if r.problem, err = b.chat(opening, where); err != nil {
		return nil, err
	}
	if len(f.History) > 0 && len(rest) > 0 { // rest[0] is the last reply of the history
		if last := &b.steps[len(b.steps)-1]; last.Observation == nil && schemas.Value(rest[0].Observation) != "" {
			b.answer("", *rest[0].Observation)
		}
		rest = rest[1:]
	}
	for _, s := range rest {
		m := chatMessage{Action: s.Action}
		b.reply(m.reply(b, cmp.Or(schemas.Value(s.Response), schemas.Value(s.Thought))), time.Time{})
		if s.Observation != nil {
			b.answer("", *s.Observation)
		}
	}
	r.steps, r.style = b.steps, b.style
	return r, nil
}

// afterHistory returns the part of the trajectory that begins with the last reply of the history.
// It returns nil if the trajectory does not contain that reply.
func (f *sweAgentFile) afterHistory() []sweStep {
	for _, m := range slices.Backward(f.History) {
		if m.Role != "assistant" {
			continue
		}
		for i, s := range slices.Backward(f.Trajectory) {
			if schemas.Value(m.Action) != "" && strings.TrimSpace(schemas.Value(s.Action)) == strings.TrimSpace(*m.Action) {
				return f.Trajectory[i:]
			}
		}
		return nil
	}
	return nil
}

// copyTo copies the data about the end of a run, which both formats contain, to a record.
func (i sweInfo) copyTo(r *record) {
	r.patch, r.cost, r.exit = schemas.Value(i.Submission), i.ModelStats.Cost, exitOf(i.ExitStatus)
}

// exitOf returns the exit reason that the words of a harness stand for, or "" if it is unknown.
func exitOf(status string) string {
	status = strings.ReplaceAll(strings.ToLower(status), "runtime", "") // RuntimeError is no timeout
	status = strings.TrimPrefix(status, "submitted (")                  // SWE-agent submitted what there was when it stopped the agent
	switch {
	case strings.HasPrefix(status, "submit"), strings.HasPrefix(status, "finish"):
		return schemas.ExitSubmitted
	case strings.Contains(status, "stuck"):
		return schemas.ExitStuck
	case strings.Contains(status, "iteration"):
		return schemas.ExitMaxSteps
	case strings.Contains(status, "cost"):
		return schemas.ExitMaxCost
	case strings.Contains(status, "context"):
		return schemas.ExitMaxContext
	case strings.Contains(status, "time"):
		return schemas.ExitWallTimeout
	case strings.Contains(status, "limit"):
		return schemas.ExitMaxSteps
	case strings.Contains(status, "format"):
		return schemas.ExitNoToolCall
	}
	return ""
}
