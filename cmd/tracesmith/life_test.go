package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/internal/pipelinetest"
)

// These tests end the process of a run with signals, and start a second process in its run
// directory.

// twoTasksConfig is the configuration of a run of two short episodes whose tasks are graded
// quickly.
const twoTasksConfig = `version: 1
run: {name: life, workers: 1}
tasks: {source: dir, with: {path: "TASKS"}}
agent:
  kind: scripted
  with:
    calls:
      - {tool: listdir, message: What is here}
      - {tool: edit, arguments: {path: note.txt, new_code: "seen\n"}}
      - {tool: submit}
`

// writeFiles writes files below dir.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// writeConfig writes a configuration into a new directory.
func writeConfig(t *testing.T, text string) (dir, config string) {
	t.Helper()
	dir = t.TempDir()
	config = filepath.Join(dir, "run.yaml")
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, config
}

// tracesmith runs a command to its end. A negative code is the signal that killed it.
func tracesmith(t *testing.T, name string, args ...string) (code int, output string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return -int(status.Signal()), out.String()
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// stagedIn lists the staged objects of a run directory.
func stagedIn(t *testing.T, run string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(run, "staging/*/*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		found[i] = strings.TrimPrefix(found[i], run)
	}
	return found
}

// tasksIn lists the instance ids of the tasks of a run's episodes.
func tasksIn(t *testing.T, run string) []string {
	t.Helper()
	code, out := tracesmith(t, "tracesmith", "show", run, "--json")
	var shown struct {
		Episodes []struct {
			InstanceID string `json:"instance_id"`
		} `json:"episodes"`
	}
	if err := json.Unmarshal([]byte(out), &shown); err != nil || code != 0 {
		t.Fatal(code, err, out)
	}
	var tasks []string
	for _, e := range shown.Episodes {
		tasks = append(tasks, e.InstanceID)
	}
	slices.Sort(tasks)
	return tasks
}

// If the program is killed at any boundary of a job and then started again, it stages one episode
// per task and nothing else.
func TestRunsResumeAfterAKillAnywhere(t *testing.T) {
	t.Parallel()
	tasks := t.TempDir()
	const task = "instructions: Write fixed.txt.\nentrypoint: test -e fixed.txt\n"
	writeFiles(t, tasks, map[string]string{"one/task.yaml": task, "one/repo/a.txt": "a\n", "two/task.yaml": task, "two/repo/b.txt": "b\n"})
	dir, config := writeConfig(t, strings.Replace(twoTasksConfig, "TASKS", tasks, 1))
	args := func(run string) []string { return []string{"run", "-c", config, "--run-dir", run} }
	want := []string{"one", "two"}
	for _, point := range pipelinetest.Points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			run := filepath.Join(dir, point)
			if code, out := tracesmith(t, "tracesmith-crash", append([]string{point, "2"}, args(run)...)...); code != -int(syscall.SIGKILL) {
				t.Fatalf("the process was not killed: exit code %d\n%s", code, out)
			}
			code, out := tracesmith(t, "tracesmith", args(run)...)
			if code != 0 || !strings.Contains(out, "COMPLETE in") || !strings.Contains(out, "+ 0 missing") {
				t.Errorf("%d\n%s", code, out)
			}
			if got, staged := tasksIn(t, run), stagedIn(t, run); !slices.Equal(got, want) || len(staged) != len(want) {
				t.Errorf("episodes of %v in %v, want one of each of %v", got, staged, want)
			}
			if _, err := os.Stat(filepath.Join(run, "engine")); !os.IsNotExist(err) {
				t.Errorf("private working data is left: %v", err)
			}
		})
	}
}

var sleepers atomic.Int32

// sleepingRun writes the configuration of a run whose episode sleeps. label is the unique name of
// its task, by which its sandboxes can be recognized.
func sleepingRun(t *testing.T) (dir, config, label string) {
	t.Helper()
	label = fmt.Sprintf("sleepy-%d-%d-%s", os.Getpid(), sleepers.Add(1), strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")))
	dir, config = writeConfig(t, `version: 1
run: {name: sleepy, workers: 1}
tasks: {source: dir, with: {path: `+"TASKS"+`}}
sandbox: {command_timeout: 10m}
agent:
  kind: scripted
  with:
    calls:
      - {tool: listdir}
      - {tool: bash, arguments: {command: sleep 600}}
      - {tool: submit}
`)
	writeFiles(t, dir, map[string]string{
		"run.yaml":                           strings.ReplaceAll(mustRead(t, config), "TASKS", filepath.Join(dir, "tasks")),
		"tasks/" + label + "/task.yaml":      "instructions: Wake up.\nentrypoint: python3 -m pytest -q\ntests: {fail_to_pass: [test_a.py::test_a]}\n",
		"tasks/" + label + "/repo/test_a.py": "def test_a():\n    assert False\n",
	})
	return dir, config, label
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// sandboxes counts the running processes of sandboxes with a label.
func sandboxes(label string) (n int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		raw, err := os.ReadFile(file)
		if err == nil && bytes.Contains(raw, []byte("\x00"+label+"\x00")) {
			n++
		}
	}
	return n
}

// wait waits until a condition of other processes holds, for at most five minutes.
func wait(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 30000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("timed out waiting for: %s", what)
}

// output collects the output of a process. It is safe for concurrent use.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start starts tracesmith and collects its output.
func start(t *testing.T, args ...string) (cmd *exec.Cmd, out *output) {
	t.Helper()
	cmd, out = exec.CommandContext(t.Context(), "tracesmith", args...), &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

func TestRunsResumeAfterASignal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		signal syscall.Signal
		code   int
		text   string
	}{
		"int":  {syscall.SIGINT, 130, "  stopped   interrupted\n"},
		"term": {syscall.SIGTERM, 143, "  stopped   terminated\n"},
		"hup":  {syscall.SIGHUP, 129, "  stopped   the terminal was closed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, config, label := sleepingRun(t)
			run := filepath.Join(dir, "run")
			cmd, out := start(t, "run", "-c", config, "--run-dir", run)
			wait(t, "a sandbox runs", func() bool { return sandboxes(label) > 0 })

			// A second process cannot use the directory of a running one.
			code, message := tracesmith(t, "tracesmith", "run", "-c", config, "--run-dir", run)
			if code != 9 || !strings.Contains(message, "is in use by pid "+fmt.Sprint(cmd.Process.Pid)) || strings.Count(message, "tracesmith: ") != 1 {
				t.Errorf("a second process: %d\n%s", code, message)
			}
			if code, message = tracesmith(t, "tracesmith", "run", "-c", config, "--run-dir", run, "--fresh"); code != 9 {
				t.Errorf("a second process with --fresh: %d\n%s", code, message)
			}

			if c.signal == syscall.SIGINT { // the first SIGINT only drains the run, and this episode sleeps for long
				if err := cmd.Process.Signal(c.signal); err != nil {
					t.Fatal(err)
				}
				wait(t, "it drains", func() bool { return strings.Contains(out.String(), "stopping: running episodes finish") })
			}
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != c.code || !strings.Contains(out.String(), c.text) || !strings.Contains(out.String(), "INTERRUPTED") {
				t.Errorf("exit code %d, want %d:\n%s", got, c.code, out)
			}
			wait(t, "no sandbox is left", func() bool { return sandboxes(label) == 0 })
			if staged := stagedIn(t, run); len(staged) != 0 {
				t.Errorf("a canceled episode was staged: %v", staged)
			}
			code, message = tracesmith(t, "tracesmith", "run", "-c", config, "--run-dir", run, "-p", "sandbox.command_timeout=1s")
			if code != 0 || !strings.Contains(message, "1 ran = 0 resolved + 1 unresolved") {
				t.Errorf("resuming: %d\n%s", code, message)
			}
		})
	}
}

// After the first interrupt, the running episode is staged and no other one starts. The same
// command then runs the rest.
func TestFirstInterruptFinishesRunningEpisodes(t *testing.T) {
	t.Parallel()
	dir, config, label := sleepingRun(t)
	gate := filepath.Join(dir, "gate")
	text := strings.NewReplacer("command: sleep 600", "command: 'while [ ! -e "+gate+" ]; do sleep 0.05; done'", "workers: 1", "workers: 1, attempts: 2").Replace(mustRead(t, config))
	writeFiles(t, dir, map[string]string{"run.yaml": strings.Replace(text, "sandbox: {", "sandbox: {kind: local, ", 1)})
	run := filepath.Join(dir, "run")
	cmd, out := start(t, "run", "-c", config, "--run-dir", run)
	wait(t, "a sandbox runs", func() bool { return sandboxes(label) > 0 })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	wait(t, "it drains", func() bool { return strings.Contains(out.String(), "stopping: running episodes finish") })
	writeFiles(t, dir, map[string]string{"gate": ""})
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || len(stagedIn(t, run)) != 1 || !strings.Contains(out.String(), "INTERRUPTED") {
		t.Errorf("exit code %d, staged %v:\n%s", code, stagedIn(t, run), out)
	}
	if code, message := tracesmith(t, "tracesmith", "run", "-c", config, "--run-dir", run); code != 0 || len(stagedIn(t, run)) != 2 {
		t.Errorf("resuming: %d\n%s", code, message)
	}
}

// The sandboxes of a killed process end, and the next start removes what it left on disk.
func TestKilledRunsLeaveNoSandbox(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, config, label := sleepingRun(t)
	cmd, _ := start(t, "run", "-c", config, "--run-dir", filepath.Join(dir, "run"))
	wait(t, "a sandbox runs", func() bool { return sandboxes(label) > 0 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	wait(t, "no sandbox is left", func() bool { return sandboxes(label) == 0 })
	if code, message := tracesmith(t, "tracesmith", "run", "-c", config, "--run-dir", filepath.Join(dir, "run"), "-p", "sandbox.command_timeout=1s"); code != 0 {
		t.Errorf("resuming: %d\n%s", code, message)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "tracesmith-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A signal ends an idle environment and its sandbox.
func TestSignalsEndAnIdleEnvironment(t *testing.T) {
	_, config, label := sleepingRun(t)
	d := startEnv(t, "-c", config, "--task", label)
	d.must(`{"op":"reset"}`)
	if sandboxes(label) == 0 {
		t.Fatal("no sandbox runs")
	}
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = d.cmd.Wait()
	if code := d.cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit code %d", code)
	}
	wait(t, "no sandbox is left", func() bool { return sandboxes(label) == 0 })
}

// A soak that is interrupted reports its results so far.
func TestInterruptedSoakReports(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "tracesmith-lab", "soak", "commands", "-n", "1000000", "--workers", "1", "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	progress := bufio.NewReader(stderr)
	if line, err := progress.ReadString('\n'); err != nil || !strings.Contains(line, " of 1000000 calls") {
		t.Fatalf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, progress) }()
	var report struct {
		Calls, Hung int
	}
	if err := json.NewDecoder(out).Decode(&report); err != nil || report.Calls == 0 {
		t.Errorf("%+v, %v", report, err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d", code)
	}
}
