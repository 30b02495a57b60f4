package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/internal/sinktest"
)

// substitutions lists the commands of the pages that the test cannot run unchanged, what it runs
// instead, and why. "help" adds --help, which still refuses an unknown command or flag. "serve"
// starts a server and ends it. "make" and "go" check that the target or the package exists.
var substitutions = []struct{ command, kind, why string }{
	{`^make `, "make", "targets build, install and test everything"},
	{`^go (test|run) |^for i in `, "go", "these are tests and measurements of the repository"},
	{`tracesmith mock --(from|cassettes) `, "help", "it needs an episode of a model, or a recording; mock.txtar and mock_from.txtar have them"},
	{`tracesmith (mock|record) `, "serve", "it serves until it is interrupted"},
	{`tracesmith view (--gold )?[^-]*$`, "serve", "it serves until it is interrupted; with --export it writes a file"},
	{` --nats `, "help", "it needs a NATS cluster; fleet.txtar has one"},
	{`--sandbox kubernetes`, "help", "it needs a Kubernetes cluster; kubernetes.txtar has one"},
	{`tracesmith run -c openai .*=my-model`, "help", "it needs a model; the tutorial runs it with the mock server"},
	{`tracesmith tasks verify --dir tasks$`, "help", "it takes long; the tutorial runs it"},
	{`tracesmith make `, "help", "it takes minutes; factory_make.txtar runs it"},
	{`tracesmith tasks (synth|split)|--tasks bugs/`, "help", "it takes minutes; factory_synth.txtar runs it"},
	{`tracesmith tasks hashes|--benchmark-hashes`, "help", "it needs a benchmark; hashes.txtar has one"},
	{`--phase `, "help", "it needs episodes of agent seeker; agents_seeker.txtar makes some"},
}

// prelude defines the shell functions of the scripts that are made from pages.
const prelude = `set -e
server=
stop() { [ -z "$server" ] || { kill -INT "$server"; wait "$server" || true; server=; }; }
trap stop EXIT
serve() { stop; rm -f address; "$@" >address & server=$!; until [ -s address ]; do kill -0 "$server"; sleep 0.05; done; }
`

// Every command in a fenced block of a page works. The blocks of a page run as one script.
func TestCommandsInDocumentationRun(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, pattern := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	fixture := pageFixture(t, root)
	used, scripts := map[string]bool{}, 0
	t.Run("pages", func(t *testing.T) {
		for _, file := range files {
			page, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, rules := pageScript(string(page), root)
			if script == "" {
				continue
			}
			scripts++
			for _, rule := range rules {
				used[rule] = true
			}
			t.Run(filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				if filepath.Base(file) == "tutorial.md" { // it starts in an empty directory
					checkOutput(t, string(page), runPageIn(t, t.TempDir(), fixture, script, false))
					return
				}
				runPage(t, fixture, script, filepath.Base(file) == "README.md")
			})
		}
	})
	for _, o := range substitutions {
		if !used[o.command] {
			t.Errorf("no page has a command that matches %q: remove the substitution", o.command)
		}
	}
	if scripts < 10 {
		t.Errorf("only %d pages have commands", scripts)
	}
}

// pageFixture makes a directory with the files that the pages assume: a dataset, runs, tasks, a
// project, a script for the mock server, and a cache.
func pageFixture(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	runPageIn(t, dir, dir, prelude+`
tracesmith run -c quickstart
mkdir -p bin runs tasks
ln -s "$(command -v tracesmith)" bin/tracesmith
cp -r out/quickstart/run runs/a
id=$(tracesmith show runs/a --json | grep -o '"episode_id": *"[0-9a-f]*"' | cut -d'"' -f4 | head -n 1)
printf '{"episode_id":"%s","mark":"keep","at":"2026-01-02T03:04:05Z"}\n' "$id" >runs/a/marks.jsonl
cp -r out/quickstart/run runs/small
cp -r out/quickstart/run runs/large
cp -r `+root+`/env/tasks/sources/builtin/tasks/stockroom tasks/stockroom
cp -r tasks/stockroom/repo project
printf 'sessions: [{model: m, turns: [{content: hello}]}]\n' >answers.yaml
`, true)
	return dir
}

// runPage runs a script in a copy of the fixture. With stockroom, runs have only that task.
func runPage(t *testing.T, fixture, script string, stockroom bool) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "cp", "-r", fixture+"/.", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	runPageIn(t, dir, fixture, script, stockroom)
}

// runPageIn runs a script in dir and returns its output.
func runPageIn(t *testing.T, dir, home, script string, stockroom bool) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, ".cache"), "TERM=dumb")
	if stockroom { // one task instead of fourteen
		cmd.Env = append(cmd.Env, "TRACESMITH_TASKS__IDS=[stockroom]")
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return string(out)
}

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")

// pageScript returns one script with the commands of all blocks of a page, and the substitutions
// that it uses. The script is "" if the page has no commands.
func pageScript(page, root string) (script string, rules []string) {
	blocks := shellBlock.FindAllStringSubmatch(page, -1)
	if len(blocks) == 0 {
		return "", nil
	}
	address := sinktest.FreeAddress()
	b := strings.Builder{}
	b.WriteString(prelude)
	for _, block := range blocks {
		text := strings.ReplaceAll(strings.ReplaceAll(block[1], "127.0.0.1:8080", address), "\\\n", " ")
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			for _, o := range substitutions {
				if regexp.MustCompile(o.command).MatchString(line) && !strings.HasPrefix(line, " ") {
					rules = append(rules, o.command)
					line = substitute(line, o.kind, root)
					break
				}
			}
			b.WriteString(line + "\n")
		}
	}
	return b.String(), rules
}

// substitute returns what runs in the place of a command.
func substitute(line, kind, root string) string {
	line = regexp.MustCompile(`\s+#.*`).ReplaceAllString(line, "")
	switch kind {
	case "help":
		return line + " --help >/dev/null"
	case "serve":
		return "serve " + line
	case "make":
		return "make -n -C " + root + strings.TrimPrefix(line, "make") + " >/dev/null"
	}
	checks := []string{"true"}
	for _, name := range regexp.MustCompile(` \./([a-z/]+[a-z])`).FindAllStringSubmatch(line, -1) {
		checks = append(checks, "test -d "+filepath.Join(root, name[1]))
	}
	return strings.Join(checks, " && ")
}

// checkOutput checks that the commands of a page print the output that the page shows, except for
// numbers, durations, ids and the width of columns.
func checkOutput(t *testing.T, page, out string) {
	t.Helper()
	normalized := func(text string) string {
		text = regexp.MustCompile(`\b[0-9a-f]{8,}\b`).ReplaceAllString(text, "ID")
		text = regexp.MustCompile(`([0-9.]+ ?(ms|s|m|min|h)\b ?)+`).ReplaceAllString(text, "0 s ")
		text = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`).ReplaceAllString(text, "0")
		return strings.Join(strings.Fields(text), " ")
	}
	printed := map[string]bool{}
	for line := range strings.Lines(out) {
		printed[normalized(line)] = true
	}
	for _, block := range regexp.MustCompile("(?ms)^```text\n(.*?)^```").FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(block[1]) {
			if !printed[normalized(line)] {
				t.Errorf("no command prints %q:\n%s", line, out)
			}
		}
	}
}
