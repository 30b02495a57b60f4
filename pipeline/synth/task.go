package synth

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/schemas"
)

// TasksName is the name of the task file in the output directory. TextsName is the file
// next to it with all issue texts of each task.
const (
	TasksName = "tasks.jsonl"
	TextsName = "texts.jsonl"
)

// failureOutput returns what the output of the failing tests shows. An issue text may use
// names from it, because an agent sees them anyway. By default, pytest also shows the code
// of a test up to the statement that fails, but not the body of a with statement (Failure.Statement is empty then).
// unittest shows only the first line of the statement.
func failureOutput(t *Trial, c command) string {
	showsCode := c.runner == runPytest && !slices.ContainsFunc(c.argv, func(arg string) bool { return strings.HasPrefix(arg, "--tb") })
	var b strings.Builder
	for _, id := range t.FailToPass {
		b.WriteString(id + "\n")
	}
	for _, f := range t.Failures {
		b.WriteString(f.Text + "\n" + f.Message + "\n" + firstLine(f.Statement) + "\n")
		for _, line := range f.Lines {
			b.WriteString(line.Function + " " + firstLine(line.Code) + "\n")
		}
		for _, frame := range f.Frames {
			b.WriteString(frame.File + " " + frame.Function + "\n")
		}
		if showsCode {
			b.WriteString(f.Statement + "\n")
			if f.Scene != nil && f.Statement != "" {
				b.WriteString(f.Scene.Call + "\n")
			}
			if f.Scene != nil {
				b.WriteString(f.Scene.Raises + "\n" + strings.Join(f.Scene.Before, "\n") + "\n")
			}
		}
	}
	return b.String()
}

// task returns the task of a released trial. Its ID reveals nothing about the bug.
func (st *factory) task(s *repoState, t *Trial, r release) schemas.Task {
	from := s.repo.Task
	kind := kindOf(picker(fmt.Sprintf("%d %s", st.cfg.Seed, t.Patch)), st.cfg.Text, r.Texts)
	out := schemas.Task{
		Source: "synth", InstanceID: instanceID(from.InstanceID, t.Patch),
		Repo: from.Repo, RepoSource: from.RepoSource, BaseCommit: from.BaseCommit, License: from.License,
		BugKind: "synth", Instructions: r.Texts[kind],
		Entrypoint: from.Entrypoint, DebugEntrypoint: from.DebugEntrypoint, Setup: from.Setup, Python: from.Python,
		Image: from.Image, Workdir: from.Workdir, TreeSHA256: r.Tree, GoldPatch: r.Gold, BugPatch: t.Patch,
		Tests: schemas.TestSpec{
			Method: s.command.runner, FailToPass: t.FailToPass, PassToPass: passToPass(s.kept, t.FailToPass), Files: from.Tests.Files,
		},
		Visibility: schemas.TestsRunnable,
		Origin: &schemas.Origin{
			Operator: t.Operators[0], Seed: st.cfg.Seed, ParentTreeSHA256: s.repo.Tree.SHA256(), Site: t.Sites[0],
			UpstreamRepo: upstream(from), License: from.License, BaseCommit: from.BaseCommit,
		},
	}
	out.Origin.Commit, out.Origin.Model, out.Origin.PromptSHA256 = t.Commit, t.Model, t.PromptSHA256
	out.Origin.Text, out.Origin.TextVersion = kind, TextVersion
	if len(t.Operators) > 1 {
		out.Origin.Operators = t.Operators
	}
	difficulty := t.Difficulty
	out.Difficulty = &difficulty
	return taskfile.Complete(out, "")
}

// upstream returns the canonical name of the repository; "" if it is not public.
func upstream(t schemas.Task) string {
	if t.RepoSource == "" && !strings.Contains(strings.Split(t.Repo, "/")[0], ".") {
		return ""
	}
	return provenance.Canonical(t.Repo)
}

// instanceID returns the ID of a task, from its repository and the hash of its bug.
func instanceID(repo, patch string) string {
	const most = 100
	return repo[:min(len(repo), most)] + "-" + schemas.HashBytes([]byte(patch))[:10]
}

// finish writes the task file and the texts, in an order that does not depend on which
// worker finished first.
func (st *factory) finish() (Summary, error) {
	tasks := st.released()
	sum := st.summary()
	w, err := taskfile.Create(filepath.Join(st.cfg.Out, TasksName))
	if err != nil {
		return sum, err
	}
	defer w.Abort()
	texts := &strings.Builder{}
	noFrame := 0
	for _, t := range tasks {
		ref, err := w.AddTree(t.state.repo.Tree)
		if err != nil {
			return sum, err
		}
		if err := w.Add(t.task, ref); err != nil {
			return sum, err
		}
		if v := t.task.Difficulty.GoldVisible; v != nil && *v == seenTests {
			noFrame++
		}
		sum.Difficulty[t.task.Difficulty.Level]++
		sum.GoldDifficulty[t.task.Difficulty.GoldLevel]++
		sum.Texts += len(t.release.Leaks)
		texts.WriteString(textLine(t.task, t.release))
	}
	if err := w.Close(); err != nil {
		return sum, err
	}
	if err := os.WriteFile(filepath.Join(st.cfg.Out, TextsName), []byte(texts.String()), 0o644); err != nil {
		return sum, fmt.Errorf("writing the texts: %w", err)
	}
	sum.Tasks, sum.File = len(tasks), filepath.Join(st.cfg.Out, TasksName)
	if len(tasks) > 0 {
		sum.NoFrame = float64(noFrame) / float64(len(tasks))
	}
	return sum, nil
}

// releasedTask is a task with the repository and the release checks that it comes from.
type releasedTask struct {
	state   *repoState
	release release
	task    schemas.Task
}

// released returns the tasks, sorted by ID. If there are enough repositories, no repository
// has more than its share of the tasks (Caps.Share).
func (st *factory) released() []releasedTask {
	var out []releasedTask
	total := st.markDuplicates()
	maxPerRepo := total
	if share := st.cfg.Caps.Share; float64(len(st.states))*share >= 2 {
		maxPerRepo = max(int(share*float64(total)), 1)
	}
	for _, s := range st.states {
		count := 0
		for _, t := range s.chosen {
			r, ok := s.releases[t.Key]
			if !ok || t.Outcome != Released {
				continue
			}
			if count++; count > maxPerRepo {
				t.Outcome, t.Reason = Capped, "the share of one repository"
				continue
			}
			out = append(out, releasedTask{s, r, st.task(s, t, r)})
		}
	}
	slices.SortStableFunc(out, func(a, b releasedTask) int { return strings.Compare(a.task.InstanceID, b.task.InstanceID) })
	return out
}

// markDuplicates marks tasks whose code equals that of a task of an earlier repository, and
// returns the number of tasks that remain.
func (st *factory) markDuplicates() (remaining int) {
	bodies := map[string]string{} // -> repository
	for _, s := range st.states {
		for _, t := range s.chosen {
			if t.Outcome != Released {
				continue
			}
			if other := bodies[t.Body]; t.Body != "" && other != "" && other != t.Repo {
				t.Outcome, t.Reason = Duplicate, inOtherRepo+other
				continue
			}
			bodies[t.Body] = t.Repo
			remaining++
		}
	}
	return remaining
}

// textLine returns the line of the texts file for a task.
func textLine(t schemas.Task, r release) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// Encoding cannot fail: the struct contains only strings and maps of strings.
	_ = enc.Encode(struct {
		InstanceID string            `json:"instance_id"`
		Texts      map[string]string `json:"texts"`
		Refused    map[string]string `json:"refused,omitempty"`
	}{t.InstanceID, r.Texts, r.Leaks})
	return b.String()
}
