package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env/tasks/discover"
	"github.com/tracesmith/tracesmith/env/tasks/lint"
	"github.com/tracesmith/tracesmith/env/tasks/scaffold"
	"github.com/tracesmith/tracesmith/env/tasks/sources"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/pipeline/synth"
	"github.com/tracesmith/tracesmith/schemas"
)

// NewTaskOptions say which task to make from a checkout.
type NewTaskOptions struct {
	Repo      string // directory
	Fix       string // commit that fixes the bug; "": the checkout has the bug
	Name      string // instance id; "": from the name of the directory
	Out       string // directory of the task; "": tasks/NAME
	PinDate   bool   // install no package released after the commit
	OnAttempt func(discover.Attempt)
	Warn      func(string)
}

// CreatedTask is a new task directory.
type CreatedTask struct {
	Dir          string
	Task         schemas.Task
	Setup        discover.Result
	OmittedFiles []string // files that the fix changes and that neither the gold patch nor the tests include
	Pinned       bool     // the setup installs no package released after the commit
}

// NewTask finds the setup of a checkout and writes a task directory.
func (w *Workbench) NewTask(ctx context.Context, n NewTaskOptions) (CreatedTask, error) {
	r, err := readRepository(n.Repo, schemas.Task{Source: "dir", Workdir: schemas.DefaultWorkdir})
	if err != nil {
		return CreatedTask{}, err
	}
	for _, warning := range CheckoutWarnings(ctx, r, n.Fix) {
		n.Warn(warning)
	}
	r.Task.InstanceID = cmp.Or(n.Name, r.Task.InstanceID)
	if !taskfile.InstancePattern.MatchString(r.Task.InstanceID) {
		return CreatedTask{}, fmt.Errorf("%q cannot be the name of a task: want up to 128 letters, digits or . _ + -, beginning with a letter or digit", r.Task.InstanceID)
	}
	var fix scaffold.Fix
	search := DiscoverOptions{OnAttempt: n.OnAttempt}
	if n.Fix != "" || r.History != "" {
		if fix, search, err = w.history(ctx, n, search); err != nil {
			return CreatedTask{}, err
		}
	}
	if fix.Hash != "" && n.Name == "" {
		r.Task.InstanceID += "-" + fix.Hash[:8]
	}
	made := CreatedTask{Dir: cmp.Or(n.Out, filepath.Join("tasks", r.Task.InstanceID)), OmittedFiles: fix.OmittedFiles}
	if err := scaffold.CheckEmpty(made.Dir); err != nil {
		return CreatedTask{}, err
	}
	if fix.Hash == "" {
		made.Setup, err = w.Discover(ctx, r, search)
		made.Task = buggyTask(made.Setup)
	} else {
		err = w.taskFromFix(ctx, &made, r, fix, search)
	}
	if err != nil {
		return made, err
	}
	made.Pinned = !search.Newest.IsZero() && slices.ContainsFunc(made.Task.Setup, func(c string) bool { return strings.Contains(c, "UV_EXCLUDE_NEWER") })
	return made, scaffold.Write(made.Dir, made.Task, made.Setup.Tree, comments(made, fix))
}

// history reads the fix, if n names one, and completes s with the date and the version of the commit.
func (w *Workbench) history(ctx context.Context, n NewTaskOptions, s DiscoverOptions) (fix scaffold.Fix, _ DiscoverOptions, err error) {
	h, err := w.store.OpenHistory(n.Repo)
	if err != nil && n.Fix == "" && !n.PinDate {
		return fix, s, nil // for example a work tree whose history is elsewhere
	}
	if err != nil {
		return fix, s, fmt.Errorf("%w: %w", scaffold.ErrNoHistory, err)
	}
	commit, err := h.FindCommit(ctx, "HEAD")
	if n.Fix != "" {
		if fix, err = scaffold.ReadFix(ctx, h, n.Fix); err == nil {
			commit = fix.Commit
		}
	}
	if err != nil {
		return fix, s, err
	}
	if n.PinDate {
		s.Newest = commit.Time.Add(24 * time.Hour).Truncate(24 * time.Hour)
	}
	s.Version, err = h.Tag(ctx, commit.Hash)
	return fix, s, err
}

// buggyTask completes the task of a checkout that has the bug.
func buggyTask(found discover.Result) schemas.Task {
	t, failing := found.Task, failingTests(found.Run)
	t.Instructions = scaffold.FromTests(t.Entrypoint, failing)
	if len(failing) == 0 {
		t.Instructions = "Describe the bug here. All tests of this program pass.\n"
	}
	t.Tests = schemas.TestSpec{}
	return t
}

// failingTests returns the tests that fail, sorted.
func failingTests(r verify.Run) []string {
	var failing []string
	for _, id := range slices.Sorted(maps.Keys(r.Tests)) {
		if s := r.Tests[id]; s == schemas.StatusFailed || s == schemas.StatusError {
			failing = append(failing, id)
		}
	}
	return failing
}

// taskFromFix makes the task of a commit that fixes a bug. It finds the setup in the fixed state, and the test lists by
// running the tests without and with the fix.
func (w *Workbench) taskFromFix(ctx context.Context, made *CreatedTask, r synth.Repo, fix scaffold.Fix, s DiscoverOptions) error {
	refuse := func(why, remedy string) error {
		return &scaffold.FixError{Rev: fix.Hash[:12], Why: why, Remedy: remedy}
	}
	parent, err := sources.AtCommit(ctx, r.History, fix.Parent)
	if err != nil {
		return err
	}
	buggy, err := taskfile.Apply(parent, []byte(fix.Tests))
	if err != nil {
		return fmt.Errorf("adding the tests of the fix: %w", err)
	}
	healthy, err := taskfile.Apply(buggy, []byte(fix.Gold))
	if err != nil {
		return fmt.Errorf("applying the fix: %w", err)
	}
	r.Tree, r.Task.BaseCommit, r.Task.BugKind, r.Task.CreatedAt = healthy, fix.Parent, "real", fix.Time
	if made.Setup, err = w.Discover(ctx, r, s); err != nil {
		return err
	}
	if made.Setup.Tree, err = withFiles(buggy, made.Setup); err != nil {
		return err
	}
	t := made.Setup.Task
	t.GoldPatch, t.Tests, t.Instructions = fix.Gold, schemas.TestSpec{}, "x" // the instructions follow below
	t = taskfile.Complete(t, t.Source)
	v, err := w.verifier(ctx, t, made.Setup.Tree)
	if err != nil {
		return err
	}
	spec, err := v.Baseline(ctx, t, made.Setup.Tree)
	if e, ok := errors.AsType[*verify.TaskError](err); ok {
		if fix.Tests == "" && errors.Is(e, verify.ErrNothingToFix) {
			return refuse("no test fails without it, and it changes no tests", "name a commit that also changes the tests")
		}
		return refuse(e.Summary(), "name a commit whose tests fail without its change to the program")
	}
	if err != nil {
		return err
	}
	t.Tests = schemas.TestSpec{Method: spec.Method, FailToPass: spec.FailToPass, PassToPass: spec.PassToPass, Files: testFiles(fix)}
	t.Instructions = scaffold.Instructions(fix, linter(fix))
	if t.Instructions == "" {
		t.Instructions = scaffold.FromTests(t.Entrypoint, spec.FailToPass)
	} else {
		t.Instructions += fmt.Sprintf("\n\nThe command `%s` shows the failure.\n", t.Entrypoint)
	}
	made.Task = t
	return nil
}

// linter returns a function that finds leaks of the fix in a text, with the same rules as the command tasks verify.
func linter(fix scaffold.Fix) scaffold.Linter {
	names := lint.Names{Files: fix.Files, Words: lint.ChangedWords([]byte(fix.Gold))}
	return func(text string) []string {
		var out []string
		for _, f := range lint.Text(text, names) {
			out = append(out, f.Kind+" "+f.Token)
		}
		return out
	}
}

// withFiles adds the generated files of a setup to a tree.
func withFiles(tree *workspace.Tree, found discover.Result) (*workspace.Tree, error) {
	var edits []workspace.FileEdit
	for _, file := range found.Added {
		data, _, _, err := found.Tree.File(file)
		if err != nil {
			return nil, err
		}
		edits = append(edits, workspace.FileEdit{Path: file, Data: data})
	}
	if len(edits) == 0 {
		return tree, nil
	}
	return tree.Edit(edits)
}

// testFiles returns the patterns of files that grading restores: the default ones and the fix's test files outside
// tests/. It returns nil, which means the default, if there are no such files.
func testFiles(fix scaffold.Fix) []string {
	var other []string
	for _, file := range fix.TestFiles {
		if !strings.HasPrefix(file, "tests/") {
			other = append(other, file)
		}
	}
	if len(other) == 0 {
		return nil
	}
	return append(taskfile.DefaultTestFiles(), other...)
}

// comments returns comments for task.yaml, by field, that say where the values come from.
func comments(made CreatedTask, fix scaffold.Fix) map[string]string {
	found := made.Setup
	var python, layout []string
	for _, f := range found.Facts {
		switch f.About {
		case "python":
			python = append(python, fmt.Sprintf("%s (%s)", f.Value, f.From))
		case "layout", "options", "version":
			layout = append(layout, fmt.Sprintf("%s (%s)", f.Value, f.From))
		}
	}
	c := map[string]string{
		"":      "Written by tracesmith tasks new. Check the instructions: the agent reads them.",
		"setup": "Found by trying, " + found.Why + ". The commands run once, with network access.",
		"entrypoint": fmt.Sprintf("Tests that passed with it: %d. Attempts: %d.", found.Run.Passed(), len(found.Attempts)) +
			prefixed("\nEvidence: ", layout),
		"python":  "Interpreter of this machine, Python " + found.Python.Version + ": change the path on another machine." + prefixed("\nThe repository allows ", python),
		"repo":    "From the remote origin of the checkout, or its name.",
		"license": "From the license file or the package's metadata.",
	}
	if made.Pinned {
		c["setup"] += "\nUV_EXCLUDE_NEWER leaves out packages that were released after the commit."
	} else if found.NoLimit != "" {
		c["setup"] += "\nPackages may be newer than the commit: " + found.NoLimit + "."
	}
	if fix.Hash != "" {
		c["instructions"] = "From the commit message of the fix, without the parts that reveal it, or else from the failing tests."
		c["base_commit"] = "The parent of the fix " + fix.Hash + "; repo/ also has the tests of the fix."
		c["tests.fail_to_pass"] = "These fail without gold.patch and pass with it."
		c["tests.pass_to_pass"] = "These pass without and with gold.patch."
		c["created_at"] = "The date of the fix."
	} else {
		c["instructions"] = "From the tests that fail. Describe the bug here as a user would."
	}
	return c
}

func prefixed(prefix string, list []string) string {
	if len(list) == 0 {
		return ""
	}
	return prefix + strings.Join(list[:min(len(list), 6)], "; ")
}
