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

// turns are the model's replies in each episode. The commands count up, so that later
// observations show whether a replay left out or repeated one.
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
	said := make([]mock.Turn, len(turns))
	for i, t := range turns {
		t.Usage = &mock.Usage{Prompt: 100, Completion: 10}
		said[i] = t
	}
	return mock.Script{Sessions: []mock.Session{{Model: model, Turns: said}}, Faults: faults}
}

// MostEpisodes bounds the episodes of a trial: the model server keeps all requests, and
// each start and each check of the run reads all staged episodes.
const MostEpisodes = 10_000

// mostAttempts is the limit of a configuration for attempts per task.
const mostAttempts = 1000

// shape returns the numbers of tasks, of which there are several but as few as possible,
// and of attempts.
func shape(episodes int) (tasks, attempts int) {
	for attempts = min(episodes/2, mostAttempts); episodes%attempts != 0; attempts-- {
	}
	return episodes / attempts, attempts
}

const batch = `version: 1
run: {name: chaos, workers: %d, attempts: %d}
tasks: {source: file, with: {path: %q}}
sandbox: {kind: %s}
agent: {kind: react, tools: [listdir, bash, view, edit, submit]}
llm: {model: %s, base_url: %q, timeout: 10s, max_retries: 12, price: {free: true}}
engine: {lease: %s}
`

// lay writes the repository, the tasks and the configuration of the batch below dir.
// endpoint is the S3 server of the store, "" for a directory.
func (c Config) lay(dir, url, endpoint string) (file string, err error) {
	tasks, attempts := shape(c.Episodes)
	list := filepath.Join(dir, "tasks.jsonl")
	if err := layTasks(list, tasks); err != nil {
		return "", fmt.Errorf("laying out the batch: %w", err)
	}
	file = filepath.Join(dir, "run.yaml")
	silent := time.Minute
	if c.Fleet > 0 {
		silent = lease
	}
	text := fmt.Sprintf(batch, c.Workers, attempts, list, c.Sandbox, model, url, silent)
	if endpoint != "" {
		text = strings.Replace(text, "run: {", fmt.Sprintf("run: {staging: %q, ", c.Store+"/staging"), 1) + fmt.Sprintf("s3: {endpoint: %q, path_style: true}\n", endpoint)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return "", fmt.Errorf("laying out the batch: %w", err)
	}
	return file, nil
}

// layTasks writes tasks that differ only in their names, so that the same calls have the
// same results in all of them, and their common repository.
func layTasks(list string, n int) error {
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
			Instructions: "Mend raise_level.", Entrypoint: "grep -q 'level . 1$' level.py && ! grep -q 'level - 1' level.py",
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
