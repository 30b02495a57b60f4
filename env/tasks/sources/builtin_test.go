package sources

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

var update = flag.Bool("update", false, "rewrite testdata/builtin.txt")

// builtin returns the source of the embedded tasks from the registry.
func builtin(t *testing.T, with map[string]any) env.Source {
	t.Helper()
	src, err := env.Sources.Build("builtin", with, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func builtinList(t *testing.T) (env.Source, []schemas.Task) {
	t.Helper()
	src := builtin(t, nil)
	tasks, err := src.Tasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return src, tasks
}

// unpackTree unpacks a task's files as a sandbox does.
func unpackTree(t *testing.T, src env.Source, instance string) string {
	t.Helper()
	tree, err := src.Tree(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "tar", "-xf", "-", "-C", dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tree.WriteTar(in), in.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// pytest runs the tests in dir with the given ids, or all tests.
func pytest(t *testing.T, dir string, ids ...string) (outcomes map[string]string, output string) {
	t.Helper()
	plugins, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(t.TempDir(), "nodeids")
	args := append([]string{"-m", "pytest", "-q", "--tb=native", "-p", "nodeids", "-p", "no:cacheprovider"}, ids...)
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=/usr/bin:/bin", "PYTHONHASHSEED=0", "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH=" + plugins, "NODEIDS=" + report,
	}
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		t.Fatal(err)
	}
	data, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("pytest gave no report: %v\n%s", err, out)
	}
	outcomes = map[string]string{}
	for line := range strings.Lines(string(data)) {
		outcome, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		outcomes[id] = outcome
	}
	return outcomes, string(out)
}

func expected(task schemas.Task, failToPass string) map[string]string {
	want := map[string]string{}
	for _, id := range task.Tests.FailToPass {
		want[id] = failToPass
	}
	for _, id := range task.Tests.PassToPass {
		want[id] = "passed"
	}
	return want
}

func goldFiles(t *testing.T, task schemas.Task) []*gitdiff.File {
	t.Helper()
	files, _, err := gitdiff.Parse(strings.NewReader(task.GoldPatch))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// rootLines returns the lines that a gold patch removes, as "path:line". For a hunk that only adds lines, it returns
// the line before them.
func rootLines(files []*gitdiff.File) []string {
	var roots []string
	for _, f := range files {
		for _, frag := range f.TextFragments {
			line, before := frag.OldPosition, int64(0)
			removed := 0
			for _, l := range frag.Lines {
				switch l.Op {
				case gitdiff.OpContext:
					line++
				case gitdiff.OpDelete:
					roots = append(roots, fmt.Sprintf("%s:%d", f.OldName, line))
					removed++
					line++
				case gitdiff.OpAdd:
					before = line - 1
				}
			}
			if removed == 0 {
				roots = append(roots, fmt.Sprintf("%s:%d", f.OldName, before))
			}
		}
	}
	return roots
}

var nativeFrame = regexp.MustCompile(`File "([^"]+)", line (\d+)`)

func rootInTraceback(dir, output string, roots []string) bool {
	for _, m := range nativeFrame.FindAllStringSubmatch(output, -1) {
		rel := strings.TrimPrefix(m[1], dir+"/")
		if slices.Contains(roots, rel+":"+m[2]) {
			return true
		}
	}
	return false
}

// Before the gold patch, exactly the listed tests of each task fail; after it, all tests pass. The golden file contains
// the ids of the tasks, and whether the traceback shows the root cause.
func TestBuiltinTasksBeforeAndAfterGold(t *testing.T) {
	src, tasks := builtinList(t)
	lines := make([]string, len(tasks))
	t.Run("tasks", func(t *testing.T) {
		for i, task := range tasks {
			t.Run(task.InstanceID, func(t *testing.T) {
				t.Parallel()
				dir := unpackTree(t, src, task.InstanceID)
				before, output := pytest(t, dir)
				if diff := cmp.Diff(expected(task, "failed"), before); diff != "" {
					t.Fatalf("before gold (-want +got):\n%s\n%s", diff, output)
				}
				roots := rootLines(goldFiles(t, task))
				lines[i] = fmt.Sprintf("%s %s %s root_in_traceback=%v\n",
					task.InstanceID, task.ID, task.BugKind, rootInTraceback(dir, output, roots))

				cmd := exec.CommandContext(t.Context(), "git", "apply", "-")
				cmd.Dir = dir
				cmd.Stdin = strings.NewReader(task.GoldPatch)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("applying gold: %v\n%s", err, out)
				}
				after, output := pytest(t, dir)
				if diff := cmp.Diff(expected(task, "passed"), after); diff != "" {
					t.Errorf("after gold (-want +got):\n%s\n%s", diff, output)
				}
			})
		}
	})
	golden := filepath.Join("testdata", "builtin.txt")
	got := strings.Join(lines, "")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("a task changed; if that is intended, run with -update (-want +got):\n%s", diff)
	}
}

// A failing test also fails when it runs alone: no test depends on another one to show the bug.
func TestBuiltinTestsFailAlone(t *testing.T) {
	src, tasks := builtinList(t)
	for _, task := range tasks {
		t.Run(task.InstanceID, func(t *testing.T) {
			t.Parallel()
			dir := unpackTree(t, src, task.InstanceID)
			failing := task.Tests.FailToPass
			if testing.Short() {
				failing = failing[:1] // make full tests all
			}
			for _, id := range failing {
				got, output := pytest(t, dir, id)
				if diff := cmp.Diff(map[string]string{id: "failed"}, got); diff != "" {
					t.Errorf("alone (-want +got):\n%s\n%s", diff, output)
				}
			}
		})
	}
}

func TestBuiltinTasksCoverManyBugKinds(t *testing.T) {
	src, tasks := builtinList(t)
	kinds := map[string]bool{}
	for _, task := range tasks {
		kinds[task.BugKind] = true
		dir := unpackTree(t, src, task.InstanceID)
		modules, program, total := 0, 0, 0
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(name) != ".py" {
				return err
			}
			data, err := os.ReadFile(name)
			n := strings.Count(string(data), "\n")
			total += n
			if rel, _ := filepath.Rel(dir, name); !strings.HasPrefix(rel, "tests/") {
				modules++
				program += n
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if modules < 2 || modules > 6 || program < 80 || total > 400 {
			t.Errorf("%s: %d modules, %d lines of program, %d in all", task.InstanceID, modules, program, total)
		}
		if f, p := len(task.Tests.FailToPass), len(task.Tests.PassToPass); f < 1 || p < 3 {
			t.Errorf("%s: %d tests fail before gold, %d pass", task.InstanceID, f, p)
		}
		if task.License != "MIT" || task.CreatedAt.IsZero() || task.GoldPatch == "" {
			t.Errorf("%s: license %q, created %s, gold patch of %d bytes; want MIT, a date and a patch",
				task.InstanceID, task.License, task.CreatedAt, len(task.GoldPatch))
		}
	}
	if len(tasks) < 14 || len(kinds) < 14 {
		t.Errorf("%d tasks of %d kinds, want 14 of each at least", len(tasks), len(kinds))
	}
}

var (
	identifier   = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]+`)
	codeLocation = regexp.MustCompile(`\.py\b|\bline \d`)
	// pythonWords are keywords that are also English words.
	pythonWords = []string{"and", "as", "else", "for", "from", "if", "in", "is", "not", "or", "with"}
	hint        = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK|(?i:bugs?|buggy))\b`)
)

// The texts that an agent can read do not reveal the bug or the fix.
func TestBuiltinTasksLeakNothing(t *testing.T) {
	src, tasks := builtinList(t)
	for _, task := range tasks {
		if m := codeLocation.FindString(task.Instructions); m != "" {
			t.Errorf("%s: the instructions name a location in the code: %q", task.InstanceID, m)
		}
		changed := map[string]int{}
		for _, f := range goldFiles(t, task) {
			if strings.HasPrefix(f.OldName, "tests/") || f.OldName != f.NewName || f.IsNew || f.IsDelete {
				t.Errorf("%s: gold changes tests, or adds, removes or renames a file: %q -> %q", task.InstanceID, f.OldName, f.NewName)
			}
			for _, frag := range f.TextFragments {
				for _, l := range frag.Lines {
					if l.Op == gitdiff.OpContext {
						continue
					}
					for _, word := range identifier.FindAllString(l.Line, -1) {
						changed[word] += 0 // adds the word even if no removed line contains it
						if l.Op == gitdiff.OpDelete {
							changed[word]++
						}
					}
				}
			}
		}
		text := readAll(t, unpackTree(t, src, task.InstanceID))
		if m := hint.FindString(text + task.Instructions); m != "" {
			t.Errorf("%s: says %q", task.InstanceID, m)
		}
		everywhere := map[string]int{}
		for _, word := range identifier.FindAllString(text, -1) {
			everywhere[word]++
		}
		said := identifier.FindAllString(task.Instructions, -1)
		for word, here := range changed {
			if everywhere[word] == here && slices.Contains(said, word) && !slices.Contains(pythonWords, word) {
				t.Errorf("%s: the instructions say %q, which only the changed lines contain", task.InstanceID, word)
			}
		}
	}
}

func readAll(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		all.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// The gold patch of one task cannot apply to another task, because the files that it changes do not exist there.
func TestBuiltinGoldFitsOnlyItsTask(t *testing.T) {
	src, tasks := builtinList(t)
	trees := map[string]string{}
	for _, task := range tasks {
		trees[task.InstanceID] = unpackTree(t, src, task.InstanceID)
	}
	for _, task := range tasks {
		for _, f := range goldFiles(t, task) {
			for instance, dir := range trees {
				_, err := os.Stat(filepath.Join(dir, f.OldName))
				if exists := err == nil; exists != (instance == task.InstanceID) {
					t.Errorf("gold of %s, tree of %s: %s exists = %v", task.InstanceID, instance, f.OldName, exists)
				}
			}
		}
	}
}

func TestBuiltinSelection(t *testing.T) {
	src := builtin(t, map[string]any{"ids": []string{"waymark", "agenda"}})
	tasks, err := src.Tasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, task := range tasks {
		got = append(got, task.InstanceID)
	}
	if diff := cmp.Diff([]string{"agenda", "waymark"}, got); diff != "" {
		t.Errorf("selection (-want +got):\n%s", diff)
	}
	_, err = builtin(t, map[string]any{"ids": []string{"agneda"}}).Tasks(t.Context())
	if err == nil || !strings.Contains(err.Error(), `no task "agneda": choose from agenda, `) {
		t.Errorf("unknown id: %v", err)
	}
}
