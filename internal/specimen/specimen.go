// Package specimen generates synthetic episodes that resemble real ones: the same number
// of steps, texts of the same length and redundancy, the usual tools. Benchmarks and
// memory tests use them because real runs would take days.
package specimen

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Tools are the tools of the episodes.
var Tools = []schemas.ToolSchema{
	tool("listdir", "List a directory.", "path"), tool("view", "Show a part of a file with line numbers.", "path"),
	tool("grep", "Search the repository.", "pattern"), tool("bash", "Run a command.", "command"),
	tool("pdb", "Send a command to the debugger.", "command"), tool("edit", "Replace lines of a file.", "path"),
	tool("eval", "Run the tests.", "verbose"), tool("submit", "Finish.", "summary"),
}

func tool(name, description, argument string) schemas.ToolSchema {
	return schemas.ToolSchema{Name: name, Description: description, Parameters: json.RawMessage(`{"properties":{"` + argument + `":{"type":"string"}},"type":"object"}`)}
}

// toolMix has the frequencies of the tools in all calls but the last.
var toolMix = []string{"view", "view", "view", "view", "grep", "grep", "listdir", "bash", "bash", "pdb", "pdb", "pdb", "pdb", "edit", "eval", "eval"}

// Sizes of texts in bytes. The sizes of observations are log-normal with this median and
// spread, 2.8 KB on average; about one in 500 is too long for a row.
const (
	medianText = 1300
	spreadText = 1.25
	maxText    = 200 << 10
)

// attempts is the number of episodes per task, tasks the number of tasks per repository.
const (
	attempts = 4
	tasks    = 6
)

// Episode returns episode n of a run. It has 14 to 66 steps, 40 on average. Equal
// arguments give equal episodes.
func Episode(run string, seed uint64, n int) *schemas.Episode {
	m := &generator{r: rand.New(rand.NewPCG(seed, uint64(n)))}
	repo, instance := Place(n)
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Minute)
	task := schemas.Task{
		Source: "specimen", InstanceID: instance, Repo: repo, Language: "python",
		License: "MIT", Visibility: schemas.TestsHidden, Workdir: "/workspace", Entrypoint: "python -m pytest -q",
		Instructions: "Some tests fail. " + m.prose(900), Tests: schemas.TestSpec{Method: schemas.VerifyPytest},
	}
	task.ID = task.ComputeID()
	m.path = "src/" + m.word() + "/" + m.word() + ".py"
	patch := m.patch()
	passed := m.r.IntN(5) < 2
	verdict := schemas.Verdict{Resolved: &passed, Status: schemas.VerifiedFail, Method: schemas.VerifyPytest, F2PTotal: 2, P2PPassed: 30, P2PTotal: 30, Parsed: 32, FinalSHA: "final", Log: m.text(3000)}
	if passed {
		verdict.Status, verdict.F2PPassed = schemas.VerifiedPass, 2
	}
	ep := &schemas.Episode{
		Job: schemas.NewJob(run, task, "specimen", n%attempts), Task: task, Started: began,
		Agent:  schemas.AgentInfo{Name: "specimen", Version: "1", Policy: "model", Model: "made-up", Provider: "none", ConfigJSON: `{}`, SamplingJSON: `{"temperature":1}`},
		EnvKey: schemas.EnvKey{Driver: "none", Limits: map[string]string{}}, Tools: Tools, Patch: patch, BaseSHA: "base", FinalSHA: "final",
		ExitReason: schemas.ExitSubmitted, Verdict: verdict, Delivery: 1,
	}
	m.steps(ep, began)
	ep.Ended = began.Add(time.Duration(len(ep.Steps)) * 4 * time.Second)
	return ep
}

// Place returns the repository and the task of episode n.
func Place(n int) (repo, instance string) {
	number := n / attempts
	repo = fmt.Sprintf("made-up/%s-%04d", words[number/tasks%len(words)], number/tasks)
	return repo, fmt.Sprintf("%s__%d", strings.ReplaceAll(repo, "/", "__"), number%tasks)
}

// generator generates the texts of one episode.
type generator struct {
	r    *rand.Rand
	path string // the file that the episode is about
}

func (m *generator) steps(ep *schemas.Episode, began time.Time) {
	add := func(s schemas.Step) {
		s.Index, s.At = len(ep.Steps), began.Add(time.Duration(len(ep.Steps))*4*time.Second)
		ep.Steps = append(ep.Steps, s)
	}
	add(schemas.Step{Turn: -1, Call: -1, Source: "system", Text: "You debug Python programs with tools. " + strings.Repeat("Look before you change anything. ", 30)})
	add(schemas.Step{Turn: -1, Call: -1, Source: "user", Text: ep.Task.Instructions})
	add(schemas.Step{Turn: -1, Call: -1, Source: "env", Text: m.text(1500)})
	turns := 11 + m.r.IntN(53)
	prompt := int64(1500)
	var hash llms.PromptHash
	for turn := range turns {
		name := toolMix[m.r.IntN(len(toolMix))]
		if turn == turns-1 {
			name = "submit"
		}
		message, args := m.prose(80+m.r.IntN(500)), m.arguments(name)
		observation := m.text(m.size())
		call := schemas.ToolCall{ID: fmt.Sprintf("call_%d", turn), Name: name, Arguments: args}
		sent := history.Messages(ep.Steps, schemas.ContextOp{})
		add(schemas.Step{
			Turn: turn, Call: 0, Source: "agent", EnvMillis: int64(m.r.IntN(400)),
			Reply: &schemas.Reply{
				Message: message, Calls: []schemas.ToolCall{call}, Model: "made-up", LLMCalls: 1, FinishReason: "tool_calls", CostUSD: new(0.002), LLMMillis: new(int64(900 + m.r.IntN(4000))),
				PromptSHA256: hash.SHA256(sent), PromptCount: len(sent),
				Usage: &schemas.Usage{Prompt: prompt, Completion: int64(len(message) / 4), Cached: prompt / 2},
			},
			ToolCall:    &call,
			Observation: &schemas.Observation{Source: name, Text: observation, FullBytes: int64(len(observation)), Targets: []string{m.path + ":1-40"}},
			State:       &schemas.EnvState{Frame: &schemas.Frame{File: m.path, Line: 1 + m.r.IntN(200), Function: m.word(), Event: "line"}},
		})
		prompt += int64(len(observation)+len(message)) / 4
	}
}

func (m *generator) size() int {
	return min(maxText, int(medianText*math.Exp(spreadText*m.r.NormFloat64())))
}

func (m *generator) arguments(name string) json.RawMessage {
	args := map[string]any{}
	switch name {
	case "view", "listdir":
		args["path"] = m.path
	case "grep":
		args["pattern"] = m.word()
	case "bash":
		args["command"] = "python -m pytest -q -k " + m.word()
	case "pdb":
		args["command"] = []string{"p " + m.word(), "n", "s", "w", fmt.Sprintf("b %s:%d", m.path, 1+m.r.IntN(200)), "c"}[m.r.IntN(6)]
	case "edit":
		args["path"], args["new_code"] = m.path, m.text(200+m.r.IntN(1200))
	}
	raw, err := schemas.CanonicalJSON(args)
	if err != nil {
		panic(err) // a map of strings can always be encoded
	}
	return raw
}

func (m *generator) word() string {
	return words[m.r.IntN(len(words))] + "_" + words[m.r.IntN(len(words))]
}

// prose returns about n bytes of sentences.
func (m *generator) prose(n int) string {
	var b strings.Builder
	for b.Len() < n {
		for range 6 + m.r.IntN(8) {
			b.WriteString(words[m.r.IntN(len(words))])
			b.WriteByte(' ')
		}
		b.WriteString(m.word() + ".\n")
	}
	return b.String()
}

// text returns at least n bytes, and at least one line, of a program with line numbers.
func (m *generator) text(n int) string {
	var b strings.Builder
	for line := 1 + m.r.IntN(300); ; line++ {
		fmt.Fprintf(&b, "%5d  %s%s = self.%s(%s, %d)\n", line, strings.Repeat("    ", 1+m.r.IntN(3)), m.word(), m.word(), m.word(), m.r.IntN(10_000))
		if b.Len() >= n {
			return b.String()
		}
	}
}

func (m *generator) patch() []byte {
	return fmt.Appendf(nil, "diff --git a/%[1]s b/%[1]s\nindex 1111111..2222222 100644\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1,1 +1,1 @@\n-%[2]s = 1\n+%[3]s = 2\n", m.path, m.word(), m.word())
}

var words = strings.Fields(`account address array attempt balance batch before block border branch buffer build cache call
	center chain change channel check child chunk class clock close code column config count cursor data default delta depth
	digest edge element entry error event expected factor field file filter final flag float flush format frame group handle
	header height index inner input invoice item join kernel key label layer length level limit line list local lock loop map
	margin mask match matrix merge method mode module name node number object offset option order outer output owner page pair
	parent parse part path pattern payload period phase pixel point pool price process queue range rate ratio read record
	region render report request result retry return root route row sample scale schema scope score segment shape share shift
	signal size slice slot sort source split stack stage start state step stock store stream string sum table target task
	thread time token total trace tree type unit update user value vector version view weight width window worker write`)
