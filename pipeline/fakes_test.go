package pipeline_test

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
	"github.com/tracesmith/tracesmith/sinks/stores"
)

// turns a fake episode has: two looks, an edit, submit.
const turns = 4

// What a call of the fake policy costs, and could have cost at most, in USD.
const callCost, callWorst = 0.01, 0.02

const patchText = "diff --git a/calc.py b/calc.py\nindex 1111111..2222222 100644\n--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"

type source struct{ n int }

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
	h      *harness
	job    schemas.Job
	edited bool
}

func (f *fakeEnv) Reset(ctx context.Context, _ bool) (env.Info, error) {
	if f.h.onReset != nil {
		if err := f.h.onReset(ctx, f.job); err != nil {
			return env.Info{}, err
		}
	}
	return env.Info{Observation: schemas.Observation{Source: "env", Text: "add() is wrong"}, Tools: []schemas.ToolSchema{{Name: "view", Parameters: json.RawMessage(`{"type":"object"}`)}}}, nil
}

func (f *fakeEnv) Repeat(ctx context.Context, call schemas.ToolCall, _ schemas.Observation) (env.Info, error) {
	return f.Step(ctx, call)
}

func (f *fakeEnv) Step(ctx context.Context, c schemas.ToolCall) (env.Info, error) {
	if f.h.onStep != nil {
		if err := f.h.onStep(ctx, f.job, c); err != nil {
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

func (f *fakeEnv) LeftOut() []schemas.LeftOut { return f.h.left }

func (f *fakeEnv) Patch(context.Context) ([]byte, string, error) {
	if f.h.onPatch != nil {
		if err := f.h.onPatch(); err != nil {
			return nil, "", err
		}
	}
	if !f.edited {
		return nil, "base", nil
	}
	return []byte(patchText), "fixed", nil
}

func (f *fakeEnv) Key() schemas.EnvKey         { return schemas.EnvKey{Driver: "fake"} }
func (f *fakeEnv) Close(context.Context) error { f.h.note("close"); return nil }

// policy follows the script and writes every question down, outside the
// process, so that a test sees what was asked over all its lives.
type policy struct {
	h   *harness
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
	if p.h.onTurn != nil {
		p.h.onTurn(ctx, p.job, turn)
	}
	return p.ask(ctx, llms.AccountOf(ctx), turn)
}

func (p *policy) ask(ctx context.Context, account llms.Account, turn int) (schemas.Reply, error) {
	calling, err := account.Begin(ctx, callWorst)
	if err != nil {
		return schemas.Reply{}, err
	}
	if p.h.onAsk != nil {
		if err := p.h.onAsk(calling, p.job, turn); err != nil {
			return schemas.Reply{}, errors.Join(err, account.End(ctx, schemas.Payment{Failed: true}))
		}
	}
	p.h.note(fmt.Sprintf("ask %s %d", p.job.EpisodeID, turn))
	usage := &schemas.Usage{Prompt: 100, Completion: 10}
	if err := account.End(ctx, schemas.Payment{Usage: usage, CostUSD: new(callCost)}); err != nil {
		return schemas.Reply{}, err
	}
	if p.h.onAnswer != nil {
		if again, err := p.h.onAnswer(turn); err != nil {
			return schemas.Reply{}, err
		} else if again {
			return p.ask(ctx, account, turn)
		}
	}
	names := [turns]string{"view", "pdb", "edit", "submit"}
	args := fmt.Sprintf(`{"command":"p x","turn":%d}`, turn)
	return schemas.Reply{
		Message: fmt.Sprintf("turn %d", turn), LLMCalls: 1, CostUSD: new(callCost), LLMMillis: new(int64(5)),
		Usage: usage, Calls: []schemas.ToolCall{{Name: names[turn], Arguments: json.RawMessage(args)}},
	}, nil
}

type verifier struct{ h *harness }

func (v verifier) Verify(_ context.Context, t schemas.Task, _ env.Tree, patch []byte, sha string) (schemas.Verdict, error) {
	v.h.note("verify " + t.InstanceID)
	if v.h.onVerify != nil {
		if verdict, err := v.h.onVerify(t); err != nil || verdict.Status != "" {
			return verdict, err
		}
	}
	ok := string(patch) == patchText && sha == "fixed"
	status := map[bool]string{true: schemas.VerifiedPass, false: schemas.VerifiedFail}[ok]
	return schemas.Verdict{Resolved: &ok, Status: status, Method: t.Tests.Method, F2PPassed: 1, F2PTotal: 1, FinalSHA: sha}, nil
}

// harness makes runs over one directory.
type harness struct {
	dir      string // of the run
	beside   string // where notes are written; "": beside the directory
	cfg      pipeline.Config
	tasks    int
	store    func(sinks.Store) sinks.Store
	onReset  func(context.Context, schemas.Job) error
	onStep   func(context.Context, schemas.Job, schemas.ToolCall) error
	onTurn   func(context.Context, schemas.Job, int) // before it is paid; the context ends when no call is begun any more
	onAsk    func(context.Context, schemas.Job, int) error
	onAnswer func(turn int) (again bool, err error) // once it is paid
	onPatch  func() error
	left     []schemas.LeftOut
	onVerify func(schemas.Task) (schemas.Verdict, error)
	change   func(*pipeline.Deps)
	mu       sync.Mutex
}

func newHarness(dir string, tasks int) *harness {
	return &harness{dir: dir, tasks: tasks, cfg: pipeline.Config{
		RunDir: dir, AgentKey: "agent-1", Identity: map[string]string{"agent": "scripted", "model": "fake-1"},
		Workers: 2, RetryDelay: time.Millisecond, LookEvery: 20 * time.Millisecond, StagePatience: 2 * time.Minute, MinFree: 1, Normalise: normalise.Config{Producer: "test"},
	}}
}

func (h *harness) notes() string { return cmp.Or(h.beside, h.dir+".notes") }

func (h *harness) note(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, err := os.OpenFile(h.notes(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		panic(err)
	}
}

// count is how many notes begin with prefix.
func (h *harness) count(prefix string) (n int) {
	raw, _ := os.ReadFile(h.notes())
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

func (h *harness) run(ctx context.Context) (observe.Report, error) {
	cfg, deps, err := h.parts(ctx)
	if err != nil {
		return observe.Report{}, err
	}
	return pipeline.Run(ctx, cfg, deps)
}

func (h *harness) parts(ctx context.Context) (pipeline.Config, pipeline.Deps, error) {
	store, err := stores.Open(ctx, h.dir, stores.S3Config{})
	if err != nil {
		return h.cfg, pipeline.Deps{}, err
	}
	if h.store != nil {
		store = h.store(store)
	}
	deps := pipeline.Deps{
		Source: source{h.tasks}, Verifier: verifier{h}, Staging: store,
		NewEnv: func(_ context.Context, j schemas.Job, _ schemas.Task) (env.Env, error) {
			h.note("env " + j.EpisodeID)
			return &fakeEnv{h: h, job: j}, nil
		},
		NewPolicy: func(j schemas.Job, _ schemas.Task) (agents.Policy, error) { return &policy{h, j}, nil },
	}
	if h.change != nil {
		h.change(&deps)
	}
	return h.cfg, deps, nil
}

func (h *harness) mustRun(t *testing.T) observe.Report {
	t.Helper()
	rep, err := h.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// staged reads every staged object, by name.
func (h *harness) staged(t *testing.T) map[string]sinks.Staged {
	t.Helper()
	out := map[string]sinks.Staged{}
	files, err := filepath.Glob(filepath.Join(h.dir, "staging", "*", "*.json.zst"))
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
