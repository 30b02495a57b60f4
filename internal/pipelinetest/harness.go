// Package pipelinetest runs batches of fake tasks with a scripted policy and a verifier that
// knows the fix, for tests of packages pipeline and fleet. Only tests import it.
package pipelinetest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// Turns is the number of turns of a fake episode: view, pdb, edit, submit.
const Turns = 4

// CallCost is the cost of a model call of the fake policy, and CallWorst the worst-case cost
// that it reserves, in USD.
const CallCost, CallWorst = 0.01, 0.02

const patchText = "diff --git a/calc.py b/calc.py\nindex 1111111..2222222 100644\n--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"

type source struct {
	n       int
	changed string // instance of the task with other instructions
}

func (s source) Name() string { return "fake" }

func (s source) Tasks(context.Context) ([]schemas.Task, error) {
	var out []schemas.Task
	for i := range s.n {
		t := schemas.Task{
			Source: "fake", InstanceID: fmt.Sprintf("bug-%02d", i), Repo: fmt.Sprintf("fake/bug-%02d", i), Language: "python",
			Instructions: "add() is wrong", Entrypoint: "pytest", Workdir: schemas.DefaultWorkdir, GoldPatch: patchText,
			Tests:      schemas.TestSpec{Method: schemas.VerifyPytest, FailToPass: []string{"test_calc.py::test_add"}},
			Visibility: "hidden",
		}
		if t.InstanceID == s.changed {
			t.Instructions = "add() is still wrong"
		}
		t.ID = t.ComputeID()
		out = append(out, t)
	}
	return out, nil
}

func (s source) Tree(context.Context, string) (env.Tree, error) { return tree{}, nil }

type tree struct{}

func (tree) SHA256() string           { return "base" }
func (tree) WriteTar(io.Writer) error { return nil }

// fakeEnv answers every call; the edit changes the file.
type fakeEnv struct {
	h      *Harness
	job    schemas.Job
	edited bool
}

func (f *fakeEnv) Reset(ctx context.Context, _ bool) (env.Info, error) {
	if f.h.OnReset != nil {
		if err := f.h.OnReset(ctx, f.job); err != nil {
			return env.Info{}, err
		}
	}
	return env.Info{Observation: schemas.Observation{Source: "env", Text: "add() is wrong"}, Tools: []schemas.ToolSchema{{Name: "view", Parameters: json.RawMessage(`{"type":"object"}`)}}}, nil
}

func (f *fakeEnv) Repeat(ctx context.Context, call schemas.ToolCall, _ schemas.Observation) (env.Info, error) {
	return f.Step(ctx, call)
}

func (f *fakeEnv) Step(ctx context.Context, c schemas.ToolCall) (env.Info, error) {
	if f.h.OnStep != nil {
		if err := f.h.OnStep(ctx, f.job, c); err != nil {
			return env.Info{}, err
		}
	}
	o := schemas.Observation{Source: c.Name, Text: "saw " + string(c.Arguments), FullBytes: int64(4 + len(c.Arguments))}
	state := schemas.EnvState{Terminated: c.Name == "submit"}
	if c.Name == "edit" {
		f.edited = true
		state.FilesChanged = []string{"calc.py"}
	}
	return env.Info{Observation: o, Observations: []schemas.Observation{o}, State: state}, nil
}

func (f *fakeEnv) NoCall(context.Context) (env.Info, error) {
	return env.Info{}, errors.New("not expected")
}

func (f *fakeEnv) LeftOut() []schemas.OmittedFile { return f.h.LeftOut }

func (f *fakeEnv) Patch(context.Context) ([]byte, string, error) {
	if f.h.OnPatch != nil {
		if err := f.h.OnPatch(); err != nil {
			return nil, "", err
		}
	}
	if !f.edited {
		return nil, "base", nil
	}
	return []byte(patchText), "fixed", nil
}

func (f *fakeEnv) Key() schemas.EnvKey         { return schemas.EnvKey{Driver: "fake"} }
func (f *fakeEnv) Close(context.Context) error { f.h.Note("close"); return nil }

// policy follows a script. It notes every model call in a file, so that a test can count the
// calls of all processes.
type policy struct {
	h   *Harness
	job schemas.Job
}

func (p *policy) Info() schemas.AgentInfo {
	return schemas.AgentInfo{Name: "scripted", Version: "1", Policy: "model", Model: "fake-1", ConfigJSON: "{}"}
}

func (p *policy) Prompts(*agents.Transcript) (string, string, error) {
	return "You debug.", "add() is wrong", nil
}

func (p *policy) Next(ctx context.Context, t *agents.Transcript) (schemas.Reply, error) {
	turn := 0
	for _, s := range t.Steps {
		turn = max(turn, s.Turn+1)
	}
	if p.h.OnTurn != nil {
		p.h.OnTurn(ctx, p.job, turn)
	}
	return p.ask(ctx, llms.AccountOf(ctx), turn)
}

func (p *policy) ask(ctx context.Context, account llms.Account, turn int) (schemas.Reply, error) {
	callCtx, err := account.Begin(ctx, CallWorst)
	if err != nil {
		return schemas.Reply{}, err
	}
	if p.h.OnAsk != nil {
		if err := p.h.OnAsk(callCtx, p.job, turn); err != nil {
			return schemas.Reply{}, errors.Join(err, account.End(ctx, schemas.Payment{Failed: true}))
		}
	}
	p.h.Note(fmt.Sprintf("ask %s %d", p.job.EpisodeID, turn))
	usage := &schemas.Usage{Prompt: 100, Completion: 10}
	if err := account.End(ctx, schemas.Payment{Usage: usage, CostUSD: new(CallCost)}); err != nil {
		return schemas.Reply{}, err
	}
	if p.h.OnAnswer != nil {
		if askAgain, err := p.h.OnAnswer(turn); err != nil {
			return schemas.Reply{}, err
		} else if askAgain {
			return p.ask(ctx, account, turn)
		}
	}
	names := [Turns]string{"view", "pdb", "edit", "submit"}
	args := fmt.Sprintf(`{"command":"p x","turn":%d}`, turn)
	return schemas.Reply{
		Message: fmt.Sprintf("turn %d", turn), LLMCalls: 1, CostUSD: new(CallCost), LLMMillis: new(int64(5)),
		Usage: usage, Calls: []schemas.ToolCall{{Name: names[turn], Arguments: json.RawMessage(args)}},
	}, nil
}

type verifier struct{ h *Harness }

func (v verifier) Verify(_ context.Context, t schemas.Task, _ env.Tree, patch []byte, sha string) (schemas.Verdict, error) {
	v.h.Note("verify " + t.InstanceID)
	if v.h.OnVerify != nil {
		if verdict, err := v.h.OnVerify(t); err != nil || verdict.Status != "" {
			return verdict, err
		}
	}
	ok := string(patch) == patchText && sha == "fixed"
	status := map[bool]string{true: schemas.VerifiedPass, false: schemas.VerifiedFail}[ok]
	return schemas.Verdict{Resolved: &ok, Status: status, Method: t.Tests.Method, F2PPassed: 1, F2PTotal: 1, FinalSHA: sha}, nil
}

// Harness makes runs in one directory. It notes events in a file, which survives the process.
// The functions let a test intervene; an error that one of them returns is the error of the
// corresponding operation. All but Open may be nil.
type Harness struct {
	Dir        string // of the run
	NotesPath  string // path of the notes; "": beside Dir
	Config     pipeline.Config
	Tasks      int
	Changed    string // instance of a task whose instructions have changed
	Open       func(ctx context.Context, dir string) (sinks.Store, error)
	WrapStore  func(sinks.Store) sinks.Store // wraps the staging store
	OnReset    func(context.Context, schemas.Job) error
	OnStep     func(context.Context, schemas.Job, schemas.ToolCall) error
	OnTurn     func(context.Context, schemas.Job, int) // before the cost of a model call is reserved; the context ends when no further call may start
	OnAsk      func(context.Context, schemas.Job, int) error
	OnAnswer   func(turn int) (askAgain bool, err error) // after the model call is settled
	OnPatch    func() error
	LeftOut    []schemas.OmittedFile
	OnVerify   func(schemas.Task) (schemas.Verdict, error) // if its verdict has no status, the verdict of the fake verifier counts
	ChangeDeps func(*pipeline.Deps)
	mu         sync.Mutex
}

// New returns a harness with the given number of tasks. open opens the staging store in the run
// directory.
func New(dir string, tasks int, open func(ctx context.Context, dir string) (sinks.Store, error)) *Harness {
	return &Harness{Dir: dir, Tasks: tasks, Open: open, Config: pipeline.Config{
		RunDir: dir, AgentKey: "agent-1", Identity: map[string]string{"agent": "scripted", "model": "fake-1"},
		Workers: 2, RetryDelay: time.Millisecond, StagePatience: 2 * time.Minute, MinFree: 1, Normalise: normalise.Config{Producer: "test"},
	}}
}

// NotesFile returns the path of the notes.
func (h *Harness) NotesFile() string { return cmp.Or(h.NotesPath, h.Dir+".notes") }

// Note appends a line to the notes.
func (h *Harness) Note(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, err := os.OpenFile(h.NotesFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		panic(err)
	}
}

// Count returns how many notes begin with prefix.
func (h *Harness) Count(prefix string) (n int) {
	raw, _ := os.ReadFile(h.NotesFile())
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// Run runs or resumes the batch in this process.
func (h *Harness) Run(ctx context.Context) (observe.Report, error) {
	cfg, deps, err := h.Parts(ctx)
	if err != nil {
		return observe.Report{}, err
	}
	return pipeline.Run(ctx, cfg, deps)
}

// Parts returns the configuration and the dependencies of the run.
func (h *Harness) Parts(ctx context.Context) (pipeline.Config, pipeline.Deps, error) {
	store, err := h.Open(ctx, h.Dir)
	if err != nil {
		return h.Config, pipeline.Deps{}, err
	}
	if h.WrapStore != nil {
		store = h.WrapStore(store)
	}
	deps := pipeline.Deps{
		Source: source{h.Tasks, h.Changed}, Verifier: verifier{h}, Staging: store,
		NewEnv: func(_ context.Context, j schemas.Job, _ schemas.Task) (env.Env, error) {
			h.Note("env " + j.EpisodeID)
			return &fakeEnv{h: h, job: j}, nil
		},
		NewPolicy: func(_ context.Context, j schemas.Job, _ schemas.Task) (agents.Policy, error) {
			return &policy{h, j}, nil
		},
	}
	if h.ChangeDeps != nil {
		h.ChangeDeps(&deps)
	}
	return h.Config, deps, nil
}

// MustRun runs the batch and fails the test if that fails.
func (h *Harness) MustRun(t *testing.T) observe.Report {
	t.Helper()
	rep, err := h.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// Staged reads all staged objects and returns them by file name.
func (h *Harness) Staged(t *testing.T) map[string]sinks.Staged {
	t.Helper()
	out := map[string]sinks.Staged{}
	files, err := filepath.Glob(filepath.Join(h.Dir, "staging", "*", "*.json.zst"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		s, err := sinks.DecodeStaged(body)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out[filepath.Base(f)] = s
	}
	return out
}
