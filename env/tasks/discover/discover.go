package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// DefaultAttempts is the largest number of plans that Find tries by default.
const DefaultAttempts = 12

// Config says what Find may use.
type Config struct {
	// Try sets up a task and runs a variant of its tests once. It returns a *setup.CommandError if a set-up command fails and a
	// *verify.TaskError if the task cannot be tested; any other error ends the search.
	Try          func(ctx context.Context, t schemas.Task, tree *workspace.Tree, v verify.Variant) (verify.Run, error)
	Interpreters []Interpreter // installed interpreters
	Newest       time.Time     // packages released later are not installed; zero means no limit
	Version      string        // version of the project, from git; "" if unknown
	Attempts     int           // largest number of plans to try; 0 means DefaultAttempts
	OnAttempt    func(Attempt) // called after every attempt; may be nil
}

// Attempt is a plan that was tried.
type Attempt struct {
	Python      string   `json:"python"` // version of the interpreter
	Setup       []string `json:"setup,omitempty"`
	Entrypoint  string   `json:"entrypoint"`
	Why         string   `json:"why"` // evidence for the plan, or what was changed in the previous plan
	Passed      int      `json:"passed"`
	Failed      int      `json:"failed"`
	Uncollected []string `json:"uncollected,omitempty"`
	Error       string   `json:"error,omitempty"` // "" if all tests pass
	Seconds     float64  `json:"seconds"`         // duration of set-up and tests
	Usable      bool     `json:"usable"`          // the runner collected tests, and enough of them pass
}

// Command returns the set-up command that installs packages, or "" if the setup installs nothing.
func (a Attempt) Command() string {
	for _, c := range slices.Backward(a.Setup) {
		if strings.HasPrefix(c, "uv pip install") {
			return c
		}
	}
	return strings.Join(a.Setup, "; ")
}

// Result is a setup that works.
type Result struct {
	Task     schemas.Task    // the given task with Python, Setup, Entrypoint and Tests.Method
	Tree     *workspace.Tree // the given files and those that the build would generate
	Python   Interpreter
	Added    []string // generated files in Tree
	Why      string   // evidence for the setup
	Facts    []Fact   // all evidence
	Attempts []Attempt
	Run      verify.Run // the test run with this setup
	Slow     bool       // the tests did not finish within the time limit
	NoLimit  string     // why Config.Newest was ignored; "" if it was respected
}

// NotFoundError says that no plan worked.
type NotFoundError struct {
	Facts    []Fact
	Attempts []Attempt
	Unknown  []string // missing modules that no known package provides
}

// notFound begins the messages of a NotFoundError.
const notFound = "no way to run the tests was found"

// summary returns the message with the error of the first plan, for which there is the most evidence.
func (e *NotFoundError) summary() string {
	if len(e.Attempts) == 0 {
		return notFound + ": the repository has no test files"
	}
	return fmt.Sprintf("%s in %d attempts; the first: %s", notFound, len(e.Attempts), e.Attempts[0].Error)
}

func (e *NotFoundError) Error() string {
	if len(e.Attempts) == 0 {
		return e.summary()
	}
	var out strings.Builder
	out.WriteString(notFound + ". These plans were tried:")
	for i, a := range e.Attempts {
		commands := slices.DeleteFunc([]string{a.Command(), a.Entrypoint}, func(c string) bool { return c == "" })
		fmt.Fprintf(&out, "\n  %d. Python %s, %s (%s)\n     %s", i+1, a.Python, strings.Join(commands, "; "), a.Why, a.Error)
	}
	if len(e.Unknown) > 0 {
		fmt.Fprintf(&out, "\nNothing was installed for the missing modules %s, because their names do not tell which package provides them: list the packages in the repository's requirements for tests.",
			strings.Join(e.Unknown, ", "))
	}
	return out.String()
}

// Refusal returns in one sentence why Find found no setup, or "" if err is another error.
func Refusal(err error) string {
	if e, ok := errors.AsType[*NotFoundError](err); ok {
		return e.summary()
	}
	if e, ok := errors.AsType[*NoPythonError](err); ok {
		return e.Error()
	}
	return ""
}

// search is one call of Find.
type search struct {
	cfg      Config
	e        *evidence
	base     schemas.Task
	tree     *workspace.Tree
	probe    *verify.Probe
	newest   time.Time // packages released later are not installed; zero means no limit
	noLimit  string    // as in Result
	attempts []Attempt
	seen     map[string]bool // commands that were tried
	best     outcome
	why      string // evidence for best
	// stop ends the search: another plan cannot make slow tests faster or add what the checkout lacks, and must not hide
	// that the repository makes results untrustworthy.
	stop bool
}

// Find finds out how to set up a checkout and run its tests. base provides the other fields of the returned task;
// messages mention its name. The error is a *NotFoundError if no plan works, and a *NoPythonError if no installed
// interpreter fits.
func Find(ctx context.Context, cfg Config, base schemas.Task, tree *workspace.Tree) (Result, error) {
	cfg.Attempts = cmp.Or(cfg.Attempts, DefaultAttempts)
	e := gather(tree)
	e.version = cmp.Or(e.version, cfg.Version)
	plans, err := e.plans(inTime(cfg.Interpreters, cfg.Newest))
	if _, ok := errors.AsType[*NoPythonError](err); ok {
		plans, err = e.plans(cfg.Interpreters)
	}
	if err != nil {
		return Result{Facts: e.facts}, err
	}
	if len(e.tests) == 0 {
		return Result{Facts: e.facts}, &NotFoundError{Facts: e.facts}
	}
	tree, added, err := e.addVersionFile(tree)
	if err != nil {
		return Result{}, err
	}
	s := &search{cfg: cfg, e: e, base: base, tree: tree, probe: e.probe(), newest: cfg.Newest, seen: map[string]bool{}}
	err = s.tryAll(ctx, plans)
	if err == nil && !s.best.usable && !s.stop && !s.newest.IsZero() {
		// Packages of that date may not build anymore.
		s.dropLimit("no plan works with packages of that time")
		s.cfg.Attempts += len(s.attempts)
		err = s.tryAll(ctx, plans)
	}
	if err != nil {
		return Result{Facts: e.facts, Attempts: s.attempts}, err
	}
	if !s.best.usable {
		return Result{Facts: e.facts, Attempts: s.attempts}, &NotFoundError{e.facts, s.attempts, e.unknown}
	}
	return Result{Task: s.best.task, Tree: tree, Python: s.best.plan.python, Added: added, Why: s.why, Facts: e.facts,
		Attempts: s.attempts, Run: s.best.run, Slow: s.best.slow(), NoLimit: s.noLimit}, nil
}

// noUploadDate matches what uv prints if an index does not state when packages were released.
var noUploadDate = regexp.MustCompile(`missing an upload date|upload-time|exclude-newer`)

// dropLimit lets the following attempts install packages of any date.
func (s *search) dropLimit(why string) {
	s.newest, s.noLimit = time.Time{}, why
}

// tryAll tries plans until one is complete.
func (s *search) tryAll(ctx context.Context, plans []plan) error {
	for _, p := range plans {
		if err := s.tryWithRepairs(ctx, p); err != nil {
			return err
		}
		if s.best.complete() || s.stop || len(s.attempts) >= s.cfg.Attempts {
			break
		}
	}
	return nil
}

// tryWithRepairs tries a plan, and repairs and tries it again as long as its errors suggest a change.
func (s *search) tryWithRepairs(ctx context.Context, p plan) error {
	why := "from " + strings.Join(p.reasons, ", ")
	if len(p.reasons) == 0 {
		why = "from the layout"
		if s.e.project != "" {
			why = "from " + s.e.project
		}
	}
	var chain []string
	for len(s.attempts) < s.cfg.Attempts {
		chain = append(chain, why)
		o, fresh, err := s.try(ctx, p, why)
		if err != nil || !fresh {
			return err
		}
		if o.run.Untrusted {
			s.best = outcome{}
		} else if o.better(s.best) {
			s.best, s.why = o, strings.Join(chain, "; ")
		}
		if hung := o.hung(); hung != "" && o.slow() {
			if p, why = leaveOutHanging(p, hung); why != "" {
				continue
			}
		}
		if s.stop = o.slow() || o.run.Untrusted; s.stop {
			return nil
		}
		if o.usable && o.failed == 0 && len(o.uncollected) == 0 {
			return nil
		}
		if o.setupFailed && !s.newest.IsZero() && noUploadDate.MatchString(o.output) {
			s.dropLimit("the package index does not say when packages were released")
			why = "without the limit of the date: " + s.noLimit
			continue
		}
		if p, why = s.e.repair(p, o); why == "" {
			if missing := s.e.missingTestModule(o.output); missing != "" && o.passed == 0 {
				s.attempts[len(s.attempts)-1].Error += ": the checkout lacks " + missing + ", which its tests import"
				s.stop = true
			}
			return nil
		}
	}
	return nil
}

// try runs one plan. fresh is false if a plan with the same commands was tried before.
func (s *search) try(ctx context.Context, p plan, why string) (o outcome, fresh bool, err error) {
	t := s.base
	t.Python, t.Setup, t.Entrypoint = p.python.Path, p.setup(s.e, s.newest), p.entrypoint()
	t.Tests.Method, t.Visibility = "", ""
	key := strings.Join(append(slices.Clone(t.Setup), t.Python, t.Entrypoint), "\x00")
	if s.seen[key] {
		return o, false, nil
	}
	s.seen[key] = true
	t = taskfile.Complete(t, t.Source)
	start := time.Now()
	run, err := s.cfg.Try(ctx, t, s.tree, verify.Variant{Probe: s.probe})
	o, err = judge(run, err)
	if err != nil {
		return o, false, err
	}
	o.plan, o.task = p, t
	a := Attempt{Python: p.python.Version, Setup: t.Setup, Entrypoint: t.Entrypoint, Why: why, Passed: o.passed, Failed: o.failed,
		Uncollected: o.uncollected, Error: o.cause, Seconds: time.Since(start).Seconds(), Usable: o.usable}
	s.attempts = append(s.attempts, a)
	if s.cfg.OnAttempt != nil {
		s.cfg.OnAttempt(a)
	}
	return o, true, nil
}

// addVersionFile adds the file to which the build writes the version, if the checkout lacks it. The build cannot
// add it, because changes that set-up commands make in the repository are discarded.
func (e *evidence) addVersionFile(tree *workspace.Tree) (*workspace.Tree, []string, error) {
	if e.versionFile == "" || !strings.HasSuffix(e.versionFile, ".py") {
		return tree, nil, nil
	}
	if _, found := slices.BinarySearch(e.paths, e.versionFile); found {
		return tree, nil, nil
	}
	version := cmp.Or(e.version, "0.0.1")
	parts := strings.Split(version, ".")
	for i, p := range parts {
		if strings.Trim(p, "0123456789") != "" {
			parts[i] = fmt.Sprintf("%q", p)
		}
	}
	text := fmt.Sprintf("__version__ = version = %q\n__version_tuple__ = version_tuple = (%s,)\n", version, strings.Join(parts, ", "))
	out, err := tree.Edit([]workspace.FileEdit{{Path: e.versionFile, Data: []byte(text)}})
	if err != nil {
		return tree, nil, fmt.Errorf("adding the version file: %w", err)
	}
	e.addFact("version", e.versionFile+" is generated", e.project)
	return out, []string{e.versionFile}, nil
}
