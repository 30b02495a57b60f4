package check

import (
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/leak"
	"github.com/tracesmith/tracesmith/env/tasks/lint"
	"github.com/tracesmith/tracesmith/schemas"
)

// Status is the result of a check: one of the constants below.
type Status string

// The statuses. Meanings explains them.
const (
	Broken      Status = "broken"
	TooSlow     Status = "too_slow"
	Untrusted   Status = "untrusted"
	NotFailing  Status = "not_failing"
	NotPassing  Status = "not_passing"
	GoldFails   Status = "gold_fails"
	GoldInexact Status = "gold_inexact"
	Unprotected Status = "unprotected"
	Leaking     Status = "leak"
	Exposed     Status = "exposed"
	PDBSilent   Status = "pdb_silent"
	Flaky       Status = "flaky"
	Unjudged    Status = "unjudged"
	NoGold      Status = "no_gold"
	Sound       Status = "sound"
)

// Statuses lists all statuses in the order in which summaries show them.
var Statuses = []Status{
	Broken, TooSlow, Untrusted, NotFailing, NotPassing, GoldFails, GoldInexact, Unprotected, Leaking, Exposed, PDBSilent, Flaky, Unjudged, NoGold, Sound,
}

// Meaning says what a status means and what to do about it. Remedy is "" if there is
// nothing to do.
type Meaning struct{ Sentence, Remedy string }

// Meanings explains every status.
var Meanings = map[Status]Meaning{
	Broken: {"The task cannot be run as it is described.",
		"correct the repository, the entrypoint, the test lists or the set-up commands"},
	TooSlow: {"A run of the tests takes longer than the time limit.",
		"make the entrypoint run fewer tests, or raise sandbox.verify_timeout"},
	Untrusted: {"The results of the tests cannot be trusted.",
		"remove what changes or replaces the test runner, or choose an entrypoint that starts one test runner per command"},
	NotFailing: {"A test that must show the bug does not fail without the fix.",
		"remove it from fail_to_pass, or give a repository that has the bug"},
	NotPassing: {"A test that must keep passing does not pass without the fix.",
		"remove it from pass_to_pass, or install what it needs with set-up commands"},
	GoldFails: {"The gold patch does not resolve the task.",
		"correct the gold patch or the test lists: all listed tests must pass with it"},
	GoldInexact: {"Reverting the gold patch does not restore the repository byte for byte.",
		"make a new gold patch against the task's repository"},
	Unprotected: {"A patch that fixes nothing resolves the task.",
		"name all test files in tests.files, and list the tests that fail"},
	Leaking: {"The repository, the sandbox or the task's text reveals the fix or its place.",
		"remove the places that the findings name from the repository, the image or the set-up, or reword the text"},
	Exposed: {"A copy of the project in the interpreter or on the host reveals the fix; the task itself does not.",
		"hide the copy (hide: [pip/_vendor/NAME] in the recipe or task.yaml), choose a bare interpreter without it, or remove it from the host"},
	PDBSilent: {"The debugger does not answer on the task's entrypoint.",
		"give a debug_entrypoint that is one Python command"},
	Flaky: {"Runs of the same code gave different verdicts; the report has both.",
		"drop the tests that change, or make them independent of order, hash seed and time"},
	Unjudged: {"The task cannot be verified; only the debugger was checked.", ""},
	NoGold:   {"No problem was found, but some checks need a gold patch.", ""},
	Sound:    {"All checks passed.", ""},
}

// Usable reports whether agents may work on a task with this status.
func (s Status) Usable() bool { return s == Sound || s == NoGold || s == Unjudged }

// TestVerdicts maps the id of each listed test to its verdict in one run: passed, failed, error, skipped, xfailed, xpassed or
// missing. A task without results of single tests has only the id "exit_code".
type TestVerdicts map[string]string

// Report is the result of checking one task.
type Report struct {
	Schema     string `json:"schema"` // "tracesmith.check/1"
	TaskID     string `json:"task_id"`
	Source     string `json:"source"`
	InstanceID string `json:"instance_id"`

	Status Status `json:"status"`
	Reason string `json:"reason,omitempty"` // why the task has this status, in one line
	Remedy string `json:"remedy,omitempty"`

	Method     string       `json:"method"`
	FailToPass []string     `json:"fail_to_pass,omitempty"`
	PassToPass []string     `json:"pass_to_pass,omitempty"`
	Runs       int          `json:"runs"`               // how often the tests ran with equal verdicts, both without the fix and with it
	Isolated   int          `json:"isolated,omitempty"` // number of tests that were also run alone
	Before     TestVerdicts `json:"before,omitempty"`   // verdicts on the repository without the fix
	After      TestVerdicts `json:"after,omitempty"`    // verdicts with the gold patch
	Flake      *Flake       `json:"flake,omitempty"`
	PDB        string       `json:"pdb,omitempty"` // where the debugger stopped: file:line function
	Leaks      []Leak       `json:"leaks,omitempty"`
	Quoted     []Leak       `json:"quoted,omitempty"` // what the text reveals of the fix, if that is public or only a hint: the task stays usable
	Tokens     int          `json:"leak_tokens"`      // number of words, texts and lines of the fix that were searched for
	TestWall   float64      `json:"test_wall_s"`      // wall time of the first run, in seconds
	Seconds    float64      `json:"seconds"`          // duration of the whole check
}

// Flake describes two runs of the same code with different verdicts.
type Flake struct {
	Side     string          `json:"side"`  // before, after
	Tests    []string        `json:"tests"` // tests with different verdicts
	Kinds    [2]string       `json:"kinds"` // conditions of each run: "as it is", "alone", or the hash seed and order
	Verdicts [2]TestVerdicts `json:"vectors"`
}

// Leak is a place that reveals a part of the fix.
type Leak struct {
	Place string `json:"place"`          // a path in the sandbox, "task text", "environment: NAME", ...
	Line  int    `json:"line,omitempty"` // line in the file at that path; 0 if unknown
	Token string `json:"token"`          // what the place reveals
	// Kind is word, text, line, lines, code, renamed code, file or patch for a part of the fix, and location for a
	// sentence in the repository that says where the bug is. For instructions that name the place of the bug, it is
	// file, module, function, line number or changed identifier.
	Kind string `json:"kind"`
	Form string `json:"form,omitempty"` // how the token is packed or encoded, outermost first
	From string `json:"from"`           // where the place comes from: FromTask, FromPip or FromHost
}

// String says where the leak is and what it reveals.
func (l Leak) String() string {
	place := l.Place
	if l.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, l.Line)
	}
	if l.Form != "" {
		place += " (" + l.Form + ")"
	}
	switch l.Kind {
	case leak.KindPatch:
		return fmt.Sprintf("%s has a patch of %s", place, l.Token)
	case leak.KindFile:
		if l.Place != textPlace {
			return fmt.Sprintf("%s is a copy of the fixed %s", place, l.Token)
		}
	case leak.KindRenamed:
		return fmt.Sprintf("%s has the fixed code with other names or in another layout: %q", place, l.Token)
	case leak.KindLocation:
		return fmt.Sprintf("%s says where the bug is: %q", place, l.Token)
	case leak.KindLines:
		return fmt.Sprintf("%s has lines of the gold patch: %q", place, l.Token)
	case lint.Function, lint.Line, lint.Module:
	default:
		return fmt.Sprintf("%s has the %s %q of the gold patch", place, l.Kind, l.Token)
	}
	return fmt.Sprintf("%s names the %s %q of the bug", place, l.Kind, l.Token)
}

// textPlace is the place of leaks in the instructions.
const textPlace = "task text"

// Values of Leak.From.
const (
	FromTask = "task" // the task's text, repository, set-up results and image
	FromPip  = "pip"  // the libraries that pip bundles for its own use
	FromHost = "host" // the interpreter's packages and the host's tools
)

// finding is the result that ends a check.
type finding struct {
	status Status
	reason string
}

func (r *Report) finish(f finding) {
	r.Status, r.Reason, r.Remedy = f.status, f.reason, Meanings[f.status].Remedy
}

// Unreadable returns the report on a task whose repository cannot be read because of err.
func Unreadable(t schemas.Task, err error) Report {
	r := newReport(t)
	reason, _, _ := strings.Cut(err.Error(), "\n")
	r.finish(finding{Broken, reason})
	return r
}

func newReport(t schemas.Task) Report {
	return Report{Schema: "tracesmith.check/1", TaskID: t.ID, Source: t.Source, InstanceID: t.InstanceID, Method: t.Tests.Method}
}
