package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/llms/llmtest"
)

// model is the name of the scripted model.
const model = "scripted"

// turns are what the model says in each episode. The calls count, so that a
// replay that leaves one out or makes one twice is seen in what follows.
var turns = []llmtest.Turn{
	llmtest.Tool("listdir", map[string]any{}),
	llmtest.Tool("bash", map[string]any{"command": "echo once >> count.txt; wc -l < count.txt"}),
	llmtest.Tool("view", map[string]any{"path": "level.py"}),
	llmtest.Tool("bash", map[string]any{"command": "echo twice >> count.txt; wc -l < count.txt"}),
	llmtest.Tool("edit", map[string]any{"path": "level.py", "old_code": "level - 1", "new_code": "level + 1"}),
	llmtest.Tool("submit", map[string]any{}),
}

// script is what the model server says, and how it fails.
func script(faults []llmtest.Fault) llmtest.Script {
	said := make([]llmtest.Turn, len(turns))
	for i, t := range turns {
		t.Usage = &llmtest.Usage{Prompt: 100, Completion: 10}
		said[i] = t
	}
	return llmtest.Script{Sessions: []llmtest.Session{{Model: model, Turns: said}}, Faults: faults}
}

const batch = `version: 1
run: {name: chaos, workers: %d, attempts: %d}
tasks:
  source: path
  with: {path: %q, instance_id: level, entrypoint: grep -q 'level . 1$' level.py && ! grep -q 'level - 1' level.py, instructions: Mend raise_level.}
sandbox: {kind: %s}
agent: {kind: react, tools: [listdir, bash, view, edit, submit]}
llm: {model: %s, base_url: %q, timeout: 10s, max_retries: 12, price: {free: true}}
engine: {lease: %s}
`

// lay writes the repository and the configuration of the batch below dir.
// endpoint is that of the store, "" for a directory.
func (c Config) lay(dir, url, endpoint string) (file string, err error) {
	repo := filepath.Join(dir, "repo")
	if err := os.MkdirAll(repo, 0o755); err != nil {
		return "", fmt.Errorf("laying out the batch: %w", err)
	}
	program := "def raise_level(level):\n    return level - 1\n"
	if err := os.WriteFile(filepath.Join(repo, "level.py"), []byte(program), 0o644); err != nil {
		return "", fmt.Errorf("laying out the batch: %w", err)
	}
	file = filepath.Join(dir, "run.yaml")
	silent := time.Minute
	if c.Fleet > 0 {
		silent = lease
	}
	text := fmt.Sprintf(batch, c.Workers, c.Episodes, repo, c.Sandbox, model, url, silent)
	if endpoint != "" {
		text = strings.Replace(text, "run: {", fmt.Sprintf("run: {staging: %q, ", c.Store+"/staging"), 1) + fmt.Sprintf("s3: {endpoint: %q, path_style: true}\n", endpoint)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return "", fmt.Errorf("laying out the batch: %w", err)
	}
	return file, nil
}
