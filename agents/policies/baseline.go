package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/prompts"
	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

// baselineVersion must go up with every change to the baseline's actions or messages.
const baselineVersion = "2"

// baseline does what the demonstrator does before its edit, but without the gold patch: a fixed
// rule chooses the functions in which it stops. Measurements compare other agents with it.
type baseline struct {
	cfg  BaselineConfig
	seed int64
}

// BaselineConfig configures a baseline.
type BaselineConfig struct {
	// Which functions come first: those of the failing test's traceback, from the innermost frame,
	// and then those that the test calls (traceback); those whose execution correlates most with
	// failing tests, by the Ochiai coefficient (ochiai); or any functions (random).
	Order string `mapstructure:"order" json:"order"`
	Stops int    `mapstructure:"stops" json:"stops"` // number of functions to stop in
}

// maxAttempts is the number of functions that a baseline tries for each stop.
const maxAttempts = 3

// orders has the rules by which a baseline chooses functions.
var orders = map[string]func(s *script, failing failure, seed int64) ([]definition, error){
	"traceback": func(s *script, failing failure, _ int64) ([]definition, error) {
		return s.evidence.tracebackOrder(failing), nil
	},
	"ochiai": func(s *script, _ failure, _ int64) ([]definition, error) { return s.ochiaiOrder() },
	"random": func(s *script, _ failure, seed int64) ([]definition, error) { return s.evidence.randomOrder(seed), nil },
}

func init() {
	agents.Registry.Register(agents.Spec{
		Kind:    "baseline",
		Summary: "no model and no gold patch: stops in functions that a fixed rule chooses, prints values and gives up",
		Default: func() any { return &BaselineConfig{Order: "traceback", Stops: 2} },
		New: func(cfg any, deps agents.Deps) (agents.Policy, error) {
			c := *cfg.(*BaselineConfig)
			switch {
			case orders[c.Order] == nil:
				return nil, fmt.Errorf("order %q is unknown: choose traceback, ochiai or random", c.Order)
			case c.Order == "ochiai" && !offers(deps.Tools, bashTool):
				return nil, fmt.Errorf("the tool %s, which the order ochiai needs to trace the tests, is missing: add it to agent.tools", bashTool)
			case c.Stops < 1:
				return nil, fmt.Errorf("stops must be at least 1, got %d", c.Stops)
			}
			return &baseline{cfg: c, seed: deps.Seed}, nil
		},
	})
}

// Info implements agents.Policy.
func (b *baseline) Info() schemas.AgentInfo {
	raw, _ := json.Marshal(b.cfg) // cannot fail: a string and a number
	return schemas.AgentInfo{
		Name: "baseline", Version: baselineVersion + "/" + prompts.Default().Version(), Policy: "baseline",
		ConfigJSON: string(raw), ToolCallStyle: "native",
	}
}

// Prompts implements agents.Policy. It returns the prompts that the agent react sends to a model.
func (b *baseline) Prompts(t *agents.Transcript) (system, problem string, err error) {
	return prompts.Default().Opening("react", prompts.Model{}, t.Task, t.Tools)
}

// Next implements agents.Policy.
func (b *baseline) Next(_ context.Context, t *agents.Transcript) (schemas.Reply, error) {
	return newScript(t, nil).next(func(s *script) error { return s.explore(b.cfg, b.seed) })
}

// explore stops in functions in the configured order and prints values there.
func (s *script) explore(cfg BaselineConfig, seed int64) error {
	failing, err := s.reproduce()
	if err != nil {
		return err
	}
	functions, err := orders[cfg.Order](s, failing, seed)
	if err != nil {
		return err
	}
	stops := 0
	var tried []definition
	for i, d := range functions {
		if stops == cfg.Stops || i == cfg.Stops*maxAttempts {
			break
		}
		tried = append(tried, d)
		args := map[string]any{"path": d.path, "start": d.line}
		if end := s.evidence.lastLine(d); end > 0 {
			args["end"] = end
		}
		if err := s.act(sayRead(d), "view", args); err != nil {
			return err
		}
		switch stopped, err := s.stopInside([]definition{d}, failing); {
		case err != nil:
			return err
		case stopped:
			if err := s.inspect(); err != nil {
				return err
			}
			stops++
		}
	}
	s.stop(sayGiveUp(tried, stops), schemas.ExitGaveUp)
	return nil
}

// tracebackEntry matches a frame in the report of unittest or pytest.
var tracebackEntry = regexp.MustCompile(`(?m)^(?:  File "([^"\n]+\.py)", line (\d+), in |([\w./-]+\.py):(\d+): )`)

// tracebackOrder returns the program's functions in the traceback of the failing test, innermost
// first, and then the functions that the test calls.
func (e *evidence) tracebackOrder(failing failure) []definition {
	var out []definition
	for _, m := range slices.Backward(tracebackEntry.FindAllStringSubmatch(failing.report, -1)) {
		path := strings.TrimPrefix(m[1]+m[3], e.workdir+"/")
		line, _ := strconv.Atoi(m[2] + m[4]) // the pattern ensures digits
		if d := e.functionAt(path, line); d != nil && !testcmd.IsTestFile(path) && !slices.Contains(out, *d) {
			out = append(out, *d)
		}
	}
	for _, c := range e.callees(e.testBody(failing)) {
		if !c.isClass && !slices.Contains(out, c.definition) {
			out = append(out, c.definition)
		}
	}
	return out
}

// randomOrder returns the program's functions in a random order.
func (e *evidence) randomOrder(seed int64) []definition {
	out := slices.DeleteFunc(slices.Clone(e.defs), func(d definition) bool { return d.isClass || testcmd.IsTestFile(d.path) })
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
