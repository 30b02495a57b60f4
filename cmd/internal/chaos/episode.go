package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/schemas"
)

// model is the name of the scripted model.
const model = "scripted"

// turns are the model's replies in each episode. The bash commands count their executions, so
// that the observations show whether a replay omitted or repeated one.
var turns = []mock.Turn{
	toolTurn("listdir", map[string]any{}),
	toolTurn("bash", map[string]any{"command": "echo once >> count.txt; wc -l < count.txt"}),
	toolTurn("view", map[string]any{"path": "level.py"}),
	toolTurn("bash", map[string]any{"command": "echo twice >> count.txt; wc -l < count.txt"}),
	toolTurn("edit", map[string]any{"path": "level.py", "old_code": "level - 1", "new_code": "level + 1"}),
	toolTurn("submit", map[string]any{}),
}

// script returns the answers of the model server and its faults.
func script(faults []mock.Fault) mock.Script {
	replies := make([]mock.Turn, len(turns))
	for i, t := range turns {
		t.Usage = &mock.Usage{Prompt: 100, Completion: 10}
		replies[i] = t
	}
	return mock.Script{Sessions: []mock.Session{{Model: model, Turns: replies}}, Faults: faults}
}

// MaxEpisodes is the maximum number of episodes of a trial. It bounds time and memory, because
// the model server keeps all requests, and each start and each check of the run reads all
// staged episodes.
const MaxEpisodes = 10_000

// maxAttempts is the maximum number of attempts per task that a configuration accepts.
const maxAttempts = 1000

// batchSize returns the number of tasks and of attempts per task whose product is episodes.
// There are at least two tasks, but as few as possible.
func batchSize(episodes int) (tasks, attempts int) {
	for attempts = min(episodes/2, maxAttempts); episodes%attempts != 0; attempts-- {
	}
	return episodes / attempts, attempts
}

// batchConfig is the configuration of the batch, a format string.
const batchConfig = `version: 1
run: {name: chaos, workers: %d, attempts: %d}
tasks: {source: file, with: {path: %q}}
sandbox: {kind: %s}
agent: {kind: react, tools: [listdir, bash, view, edit, submit]}
llm: {model: %s, base_url: %q, timeout: 10s, max_retries: 12, price: {free: true}}
engine: {lease: %s}
`

// writeBatch writes the repository, the tasks and the configuration of the batch below dir,
// and returns the path of the configuration. url is that of the model server. endpoint is the
// URL of the S3 server; "" if the batch stages in its run directory.
func (c Config) writeBatch(dir, url, endpoint string) (file string, err error) {
	tasks, attempts := batchSize(c.Episodes)
	list := filepath.Join(dir, "tasks.jsonl")
	if err := writeTasks(list, tasks); err != nil {
		return "", fmt.Errorf("writing the batch: %w", err)
	}
	file = filepath.Join(dir, "run.yaml")
	leaseTime := time.Minute
	if c.Fleet > 0 {
		leaseTime = lease
	}
	text := fmt.Sprintf(batchConfig, c.Workers, attempts, list, c.Sandbox, model, url, leaseTime)
	if endpoint != "" {
		text = strings.Replace(text, "run: {", fmt.Sprintf("run: {staging: %q, ", c.Store+"/staging"), 1) + fmt.Sprintf("s3: {endpoint: %q, path_style: true}\n", endpoint)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return "", fmt.Errorf("writing the batch: %w", err)
	}
	return file, nil
}

// writeTasks writes the task file list with n tasks, and the repository that they share. The
// tasks differ only in their names, so that the same calls have the same results in all of
// them.
func writeTasks(list string, n int) error {
	const name = "repo"
	repo := filepath.Join(filepath.Dir(list), name)
	if err := os.MkdirAll(repo, 0o755); err != nil {
		return err
	}
	program := "def raise_level(level):\n    return level - 1\n"
	if err := os.WriteFile(filepath.Join(repo, "level.py"), []byte(program), 0o644); err != nil {
		return err
	}
	files, err := workspace.FromDir(repo)
	if err != nil {
		return err
	}
	w, err := taskfile.Create(list)
	if err != nil {
		return err
	}
	defer w.Abort()
	for i := range n {
		if err := w.Add(schemas.Task{
			Source: "chaos", InstanceID: fmt.Sprintf("level-%05d", i+1), TreeSHA256: files.SHA256(),
			Instructions: "Fix raise_level.", Entrypoint: "grep -q 'level . 1$' level.py && ! grep -q 'level - 1' level.py",
		}, name); err != nil {
			return err
		}
	}
	return w.Close()
}

// toolTurn returns a turn with one tool call.
func toolTurn(name string, arguments map[string]any) mock.Turn {
	return mock.Turn{ToolCalls: []mock.Call{{Name: name, Arguments: arguments}}}
}
