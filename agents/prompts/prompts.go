// Package prompts renders the messages that open an episode. Its templates are embedded, and
// users can replace them with their own files. A template that uses an unknown name is an error.
//
// The prompts are part of the dataset: raise version with every change to the embedded templates,
// and update the golden files.
package prompts

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	template "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/tracesmith/tracesmith/agents/calltext"
	"github.com/tracesmith/tracesmith/agents/handover"
	"github.com/tracesmith/tracesmith/schemas"
)

//go:embed *.tmpl
var embedded embed.FS

// version goes up with every change to the embedded templates.
const version = "5"

// Set holds the templates of all agents. It is safe for concurrent use.
type Set struct {
	templates    *template.Template
	files        Files
	fileVersions string // the part of Version that describes the user's files

	mu    sync.Mutex // held by render
	depth int        // nesting of includes
	limit int        // View.ContextLimit of the current rendering
}

var builtin = func() *Set {
	s := &Set{}
	s.templates = template.Must(s.root().ParseFS(embedded, "*.tmpl"))
	s.rewriteHas()
	return s
}()

// Default returns the set of embedded templates.
func Default() *Set { return builtin }

// Version returns the version number and a hash of all embedded templates, and the names and
// hashes of the user's files.
func (s *Set) Version() string {
	entries, err := embedded.ReadDir(".")
	if err != nil {
		panic(err) // embedded
	}
	all := map[string]string{}
	for _, e := range entries {
		text, err := embedded.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		all[e.Name()] = string(text)
	}
	return version + "+" + schemas.ShortHash(all)[:12] + s.fileVersions
}

// View holds the facts of an episode that templates may use. None of them is privileged. Templates
// can also write {{.Has "TOOL"}}.
type View struct {
	Agent        string
	InstanceID   string
	Instructions string
	Entrypoint   string
	Workdir      string
	Tools        []schemas.ToolSchema
	Describe     string         // the tools as text, for models that do not get a native description of them
	Model        string         // name of the acting model; "" if none
	ContextLimit int            // of the model, in tokens; 0 if unknown
	Steps        int            // maximum number of replies; 0 means no limit
	Pack         *handover.Pack // what the solver gets; nil for other agents
}

// Model describes the model that a prompt is for.
type Model struct {
	Name         string
	ContextLimit int // in tokens; 0 if unknown
}

// has reports whether the agent has a tool. It is {{.Has "TOOL"}} in templates.
func has(v View, tool string) bool {
	return slices.ContainsFunc(v.Tools, func(t schemas.ToolSchema) bool { return t.Name == tool })
}

// Opening renders the system prompt and the problem for an agent. It uses the templates
// AGENT_system.tmpl and AGENT_problem.tmpl, or the user's files.
func (s *Set) Opening(agent string, m Model, t schemas.Task, tools []schemas.ToolSchema) (system, problem string, err error) {
	return s.renderPair(s.files.System, s.files.Problem, newView(agent, m, t, tools))
}

// Seek renders the prompts for an agent that finds the cause of a bug but changes nothing. steps
// limits its replies; 0 means no limit.
func (s *Set) Seek(m Model, t schemas.Task, tools []schemas.ToolSchema, steps int) (system, problem string, err error) {
	v := newView("seek", m, t, tools)
	v.Steps = steps
	return s.renderPair(s.files.System, s.files.Problem, v)
}

// Solve renders the prompts for an agent that writes a fix from a pack.
func (s *Set) Solve(m Model, t schemas.Task, tools []schemas.ToolSchema, pack handover.Pack) (system, problem string, err error) {
	v := newView("solve", m, t, tools)
	v.Pack = &pack
	return s.renderPair(s.files.SolveSystem, s.files.SolveProblem, v)
}

func newView(agent string, m Model, t schemas.Task, tools []schemas.ToolSchema) View {
	return View{Agent: agent, Model: m.Name, ContextLimit: m.ContextLimit, InstanceID: t.InstanceID, Instructions: t.Instructions,
		Entrypoint: t.Entrypoint, Workdir: t.Workdir, Tools: tools, Describe: calltext.Describe(tools)}
}

// renderPair renders the two templates in the given files. If a name is "", it renders the
// agent's embedded template instead.
func (s *Set) renderPair(systemFile, problemFile string, v View) (system, problem string, err error) {
	if system, err = s.render(cmp.Or(systemFile, v.Agent+"_system.tmpl"), v); err != nil {
		return "", "", err
	}
	if problem, err = s.render(cmp.Or(problemFile, v.Agent+"_problem.tmpl"), v); err != nil {
		return "", "", err
	}
	if system == "" && problem == "" {
		return "", "", errors.New("both prompts are empty, and the model needs at least one")
	}
	return system, problem, nil
}

func (s *Set) render(name string, data View) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.depth, s.limit = 0, data.ContextLimit
	text, err := s.execute(name, data)
	if err != nil {
		return "", fmt.Errorf("rendering a prompt: %w: %s", err, remedy)
	}
	return text, nil
}

func (s *Set) execute(name string, data any) (string, error) {
	var out boundedBuilder
	if err := s.templates.ExecuteTemplate(&out, name, data); err != nil {
		return "", err
	}
	return strings.TrimSpace(out.String()), nil
}

// include implements the template function include.
func (s *Set) include(name string, data any) (string, error) {
	if s.depth++; s.depth > maxDepth {
		return "", fmt.Errorf("include %q: templates include each other more than %d deep", name, maxDepth)
	}
	defer func() { s.depth-- }()
	return s.execute(name, data)
}

// maxDepth bounds the nesting of includes.
const maxDepth = 100

// remedy ends every error about a template.
const remedy = "correct the template, or leave it out of agent.prompts for the built-in one"

// boundedBuilder is a strings.Builder that fails at maxPrompt bytes.
type boundedBuilder struct{ strings.Builder }

const maxPrompt = 4 << 20 // bytes

func (l *boundedBuilder) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxPrompt {
		return 0, fmt.Errorf("the prompt is longer than %d MiB", maxPrompt>>20)
	}
	return l.Builder.Write(p)
}
