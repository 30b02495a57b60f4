// Package prompts holds the words a policy opens an episode with. They are part
// of the dataset: a changed word is a new version, and golden files show it.
// Templates are embedded, and a user's files may stand in for them (files.go);
// all fail on anything they do not know. It imports schemas, agents/calltext,
// agents/handover and llms/tokens.
package prompts

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/template"

	"github.com/tracesmith/tracesmith/agents/calltext"
	"github.com/tracesmith/tracesmith/agents/handover"
	"github.com/tracesmith/tracesmith/schemas"
)

//go:embed *.tmpl
var embedded embed.FS

// version counts changes made on purpose.
const version = "5"

// Set is the templates of all agents. Safe for concurrent use.
type Set struct {
	templates    *template.Template
	files        Files
	fileVersions string // what Version says of a user's files

	mu    sync.Mutex // held by render
	depth int        // of includes
	limit int        // View.ContextLimit of what is rendered
}

// builtin is the set of embedded templates.
var builtin = func() *Set {
	s := &Set{}
	s.templates = template.Must(s.root().ParseFS(embedded, "*.tmpl"))
	return s
}()

// Default is the set of embedded templates.
func Default() *Set { return builtin }

// Version of the prompts: a number and the hash of all embedded templates, and
// the names and hashes of a user's files.
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

// View is what templates may use of an episode: nothing privileged.
type View struct {
	Agent        string
	InstanceID   string
	Instructions string
	Entrypoint   string
	Workdir      string
	Tools        []schemas.ToolSchema
	Model        string         // that acts; "" = none
	ContextLimit int            // of the model, in tokens; 0 = not known
	Steps        int            // replies that may be made, 0 = any number
	Pack         *handover.Pack // what a solver is given
}

// Model is who is told something.
type Model struct {
	Name         string
	ContextLimit int // tokens, 0 = not known
}

// Has tells whether the agent has a tool.
func (v View) Has(tool string) bool {
	return slices.ContainsFunc(v.Tools, func(t schemas.ToolSchema) bool { return t.Name == tool })
}

// Describe is the list of tools for models that get no other description.
func (v View) Describe() string { return calltext.Describe(v.Tools) }

// Opening renders the pair of messages that opens an agent's episode: the
// templates AGENT_system.tmpl and AGENT_problem.tmpl, or the files in their place.
func (s *Set) Opening(agent string, m Model, t schemas.Task, tools []schemas.ToolSchema) (system, problem string, err error) {
	return s.renderPair(s.files.System, s.files.Problem, view(agent, m, t, tools))
}

// Seek is the pair for an agent that finds out and changes nothing; steps is how
// many replies it may make, 0 = any number.
func (s *Set) Seek(m Model, t schemas.Task, tools []schemas.ToolSchema, steps int) (system, problem string, err error) {
	v := view("seek", m, t, tools)
	v.Steps = steps
	return s.renderPair(s.files.System, s.files.Problem, v)
}

// Solve is the pair for an agent that writes a fix from what was handed over.
func (s *Set) Solve(m Model, t schemas.Task, tools []schemas.ToolSchema, pack handover.Pack) (system, problem string, err error) {
	v := view("solve", m, t, tools)
	v.Pack = &pack
	return s.renderPair(s.files.SolveSystem, s.files.SolveProblem, v)
}

func view(agent string, m Model, t schemas.Task, tools []schemas.ToolSchema) View {
	return View{Agent: agent, Model: m.Name, ContextLimit: m.ContextLimit, InstanceID: t.InstanceID, Instructions: t.Instructions,
		Entrypoint: t.Entrypoint, Workdir: t.Workdir, Tools: tools}
}

// renderPair renders two files, "" being the agent's own template.
func (s *Set) renderPair(first, second string, v View) (system, problem string, err error) {
	if system, err = s.render(cmp.Or(first, v.Agent+"_system.tmpl"), v); err != nil {
		return "", "", err
	}
	if problem, err = s.render(cmp.Or(second, v.Agent+"_problem.tmpl"), v); err != nil {
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

// include is the function of templates.
func (s *Set) include(name string, data any) (string, error) {
	if s.depth++; s.depth > maxDepth {
		return "", fmt.Errorf("include %q: templates include each other more than %d deep", name, maxDepth)
	}
	defer func() { s.depth-- }()
	return s.execute(name, data)
}

const maxDepth = 100

const remedy = "correct the template, or leave it out of agent.prompts for the built-in one"

// boundedBuilder is a text that does not grow for ever.
type boundedBuilder struct{ strings.Builder }

const maxPrompt = 4 << 20 // bytes

func (l *boundedBuilder) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxPrompt {
		return 0, fmt.Errorf("it is longer than %d MiB", maxPrompt>>20)
	}
	return l.Builder.Write(p)
}
