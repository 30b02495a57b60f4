package imports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// datasetRow is a row of a dataset of trajectories, or a line of the output.jsonl of an evaluation
// with OpenHands. Sources: the columns of SWE-rebench-openhands-trajectories and
// SWE-agent-trajectories (nebius), OpenHands-Sampled-Trajectories (SWE-Gym), SWE-Zero-openhands-trajectories
// and Open-SWE-Traces (NVIDIA), CoderForge-Preview (Together), SWE-smith-trajectories, and EvalOutput
// in evaluation/utils/shared.py of OpenHands.
type datasetRow struct {
	Instance   lenient[string] `json:"instance_id"`
	Trajectory json.RawMessage `json:"trajectory"`
	Messages   json.RawMessage `json:"messages"`
	History    json.RawMessage `json:"history"`

	TrajectoryID lenient[string] `json:"trajectory_id"`
	TrajID       lenient[string] `json:"traj_id"`
	RunID        lenient[string] `json:"run_id"`
	Repo         lenient[string] `json:"repo"`
	BaseCommit   lenient[string] `json:"base_commit"`
	License      lenient[string] `json:"license"`
	Problem      lenient[string] `json:"problem_statement"`
	Model        lenient[string] `json:"model"`
	ModelName    lenient[string] `json:"model_name"`

	ModelPatch     lenient[string] `json:"model_patch"`
	GitPatch       lenient[string] `json:"git_patch"`
	GeneratedPatch lenient[string] `json:"generated_patch"`
	Patch          lenient[string] `json:"patch"`

	ExitStatus   lenient[string] `json:"exit_status"`
	FinishReason lenient[string] `json:"finish_reason"`
	Error        lenient[string] `json:"error"`

	Resolved lenient[any]           `json:"resolved"`
	Target   lenient[any]           `json:"target"`
	Reward   lenient[any]           `json:"reward"`
	Report   lenient[verdictReport] `json:"report"`
	Result   lenient[struct {
		GitPatch lenient[string]        `json:"git_patch"`
		Resolved lenient[any]           `json:"resolved"`
		Report   lenient[verdictReport] `json:"report"`
	}] `json:"test_result"`

	Tools    lenient[orText[[]json.RawMessage]] `json:"tools"`
	Metadata lenient[runMetadata]               `json:"metadata"`
	Metrics  lenient[struct {
		Cost *float64 `json:"accumulated_cost"`
	}] `json:"metrics"`

	EpisodeID lenient[string] `json:"episode_id"` // of rows that tracesmith exported
	Split     lenient[string] `json:"split"`
}

type verdictReport struct {
	Resolved lenient[any] `json:"resolved"`
}

type runMetadata struct {
	AgentClass lenient[string] `json:"agent_class"`
	LLM        lenient[struct {
		Model lenient[string] `json:"model"`
	}] `json:"llm_config"`
}

// conversationKeys are the columns that may contain the conversation, in the order of preference.
var conversationKeys = []string{"messages", "trajectory", "history"}

// parseOpenHands reads a row of a dataset that OpenHands made, or a list of its events. Calls may be
// in the texts of replies.
func parseOpenHands(name string, raw []byte) (*record, error) {
	r, err := parseDataset("openhands", name, raw)
	if err == nil {
		markResults(r.steps)
	}
	return r, err
}

// parseMessages reads a row with messages in OpenAI's format.
func parseMessages(name string, raw []byte) (*record, error) {
	return parseDataset("messages", name, raw)
}

func parseDataset(format, name string, raw []byte) (*record, error) {
	row, list, where, err := readRow(raw)
	if err != nil {
		return nil, err
	}
	if list == nil {
		return nil, fmt.Errorf("%s are missing: the row has no conversation", strings.Join(conversationKeys, ", "))
	}
	messages, shown, err := conversation(list, where)
	if err != nil {
		return nil, err
	}
	r := row.record(format)
	if r.tools = toolsOf(row.Tools.value.value); len(r.tools) == 0 {
		r.tools = toolsOf(shown)
	}
	b := &builder{seen: map[string]bool{}, talks: true, functions: true, tools: r.tools}
	problem, err := b.chat(messages, where)
	if err != nil {
		return nil, err
	}
	r.problem = cmp.Or(r.problem, problem)
	r.instance = cmp.Or(r.instance, stem(name), "problem-"+schemas.ShortHash([]string{r.problem}))
	r.steps, r.style = b.steps, b.style
	return r, nil
}

// readRow returns the row, its conversation, and the name of the conversation. A list is a
// conversation without a row.
func readRow(raw []byte) (row datasetRow, list json.RawMessage, where string, err error) {
	var value json.RawMessage
	if err := decode(raw, &value); err != nil {
		return row, nil, "", err
	}
	if value[0] == '[' {
		return row, value, "events", nil
	}
	if err := decode(raw, &row); err != nil {
		return row, nil, "", err
	}
	for i, column := range []json.RawMessage{row.Messages, row.Trajectory, row.History} {
		if len(column) > 0 && string(column) != "null" {
			return row, column, conversationKeys[i], nil
		}
	}
	return row, nil, "", nil
}

// conversation reads a list of messages or of events, in which the first element decides. where is
// the name of the list in errors.
func conversation(raw json.RawMessage, where string) ([]chatMessage, []json.RawMessage, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(unquoted(raw), &list); err != nil {
		return nil, nil, fmt.Errorf("%s is not a list", where)
	}
	if len(list) > 0 && !hasKey(list[0], "role") {
		return eventMessages(list, where)
	}
	out := make([]chatMessage, 0, len(list))
	for i, raw := range list {
		var m rowMessage
		if err := json.Unmarshal(unquoted(raw), &m); err != nil {
			return nil, nil, fmt.Errorf("%s[%d] is not a message: %w", where, i, err)
		}
		out = append(out, m.toChat())
	}
	return out, nil, nil
}

// hasKey reports whether raw is an object, or the text of one, that has one of the keys.
func hasKey(raw json.RawMessage, keys ...string) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(unquoted(raw), &object) != nil {
		return false
	}
	for _, k := range keys {
		if _, ok := object[k]; ok {
			return true
		}
	}
	return false
}

// record returns what the row says about its run.
func (w *datasetRow) record(format string) *record {
	r := &record{
		harness: format, instance: w.Instance.value, problem: w.Problem.value, runID: w.RunID.value,
		session: cmp.Or(w.EpisodeID.value, w.TrajectoryID.value, w.TrajID.value),
		model:   cmp.Or(w.Model.value, w.ModelName.value, w.Metadata.value.LLM.value.Model.value),
		agent:   w.Metadata.value.AgentClass.value, cost: w.Metrics.value.Cost,
		patch: cmp.Or(w.ModelPatch.value, w.GitPatch.value, w.GeneratedPatch.value, w.Result.value.GitPatch.value),
		exit:  exitOf(cmp.Or(w.ExitStatus.value, w.FinishReason.value, w.Error.value)),
		task:  schemas.Task{Repo: w.Repo.value, BaseCommit: w.BaseCommit.value, License: w.License.value},
	}
	if format == "messages" {
		r.harness = "unknown"
	}
	if r.patch == "" && w.TrajID.value != "" { // in other datasets, patch is the fix of the task
		r.patch = w.Patch.value
	}
	if r.task.Repo == "" {
		r.task.Repo = repoOf(w.Instance.value)
	}
	if split := w.Split.value; w.EpisodeID.value != "" && split != "" {
		r.task.Origin = &schemas.Origin{Split: split}
	}
	for _, c := range []struct {
		field string
		value any
	}{
		{"resolved", w.Resolved.value}, {"target", w.Target.value}, {"report.resolved", w.Report.value.Resolved.value},
		{"test_result.resolved", w.Result.value.Resolved.value}, {"test_result.report.resolved", w.Result.value.Report.value.Resolved.value},
		{"reward", w.Reward.value},
	} {
		if claim := flag(c.value); claim != nil {
			r.claim, r.claimedBy = claim, format+"."+c.field
			break
		}
	}
	return r
}

// flag reads a claim of success, which is a boolean, 0 or 1.
func flag(v any) *bool {
	switch v {
	case true, 1.0, "true", "True":
		return new(true)
	case false, 0.0, "false", "False":
		return new(false)
	}
	return nil
}

// sampledInstance matches the ID of an instance with the number of a sample.
var sampledInstance = regexp.MustCompile(`^(.+__.+-[0-9]+)_[0-9]+$`)

// repoOf returns the repository in the ID of an instance, or "".
func repoOf(instance string) string {
	if repo := provenance.RepoOfInstance(instance); repo != "" {
		return repo
	}
	if m := sampledInstance.FindStringSubmatch(instance); m != nil {
		return provenance.RepoOfInstance(m[1])
	}
	return ""
}

var (
	// exitCode matches the line in which OpenHands shows the model the exit code of a command.
	exitCode = regexp.MustCompile(`\[(?:The command completed|Command finished) with exit code (\d+)\.?\]`)
	// resultLead matches the line that OpenHands may write before a result.
	resultLead = regexp.MustCompile(`^(?:OBSERVATION:|EXECUTION RESULT of \[[^\]\n]*\]:)\n`)
)

// lastBytes is the part of an answer that may contain its exit code.
const lastBytes = 1000

// markResults sets the exit codes and errors that OpenHands writes into the texts of answers.
func markResults(steps []schemas.Step) {
	for i := range steps {
		o, c := steps[i].Observation, steps[i].ToolCall
		if o == nil || c == nil || o.ExitCode != nil || o.IsError {
			continue
		}
		switch metrics.CategoryOf(c) {
		case "bash":
			found := exitCode.FindAllStringSubmatch(o.Text[max(0, len(o.Text)-lastBytes):], -1)
			if len(found) == 0 {
				continue
			}
			var code int
			if json.Unmarshal([]byte(found[len(found)-1][1]), &code) != nil {
				continue // no number that a program could return
			}
			setExitCode(o, code)
		case "view", "edit":
			if strings.HasPrefix(resultLead.ReplaceAllString(o.Text, ""), "ERROR:") {
				o.IsError, o.ErrorClass = true, schemas.ErrUserError
			}
		}
	}
}
