// Package prompts holds the words a policy opens an episode with. They are part
// of the dataset: a changed word is a new version, and golden files show it.
// Templates are embedded, parsed once, and fail on anything they do not know.
// It imports schemas and the pack of agents/handover.
package prompts

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/tracesmith/tracesmith/agents/handover"
	"github.com/tracesmith/tracesmith/schemas"
)

//go:embed *.tmpl
var files embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").
	Funcs(template.FuncMap{"trim": strings.TrimSpace, "steps": steps, "indent": indent}).ParseFS(files, "*.tmpl"))

// number counts changes made on purpose.
const number = "2"

// Version of the prompts: a number and the hash of all templates.
func Version() string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // embedded
	}
	all := map[string]string{}
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		all[e.Name()] = string(text)
	}
	return number + "+" + schemas.ShortHash(all)[:12]
}

// view is what templates may use of a task: nothing privileged.
type view struct {
	Instructions string
	Entrypoint   string
	Workdir      string
	Steps        int            // replies that may be made, 0 = any number
	Pack         *handover.Pack // what a solver is given
	tools        []string
}

// Has tells whether the agent has a tool.
func (v view) Has(tool string) bool { return slices.Contains(v.tools, tool) }

// Seeker is the pair of opening messages of an agent that gathers facts before
// it changes anything: the system prompt and the problem.
func Seeker(t schemas.Task, tools []schemas.ToolSchema) (system, problem string, err error) {
	return pair("seeker_system.tmpl", "seeker_problem.tmpl", newView(t, tools))
}

// Seek is the pair for an agent that finds out and changes nothing; steps is how
// many replies it may make, 0 = any number.
func Seek(t schemas.Task, tools []schemas.ToolSchema, steps int) (system, problem string, err error) {
	v := newView(t, tools)
	v.Steps = steps
	return pair("seek_system.tmpl", "seeker_problem.tmpl", v)
}

// Solve is the pair for an agent that writes a fix from what was handed over.
func Solve(t schemas.Task, tools []schemas.ToolSchema, pack handover.Pack) (system, problem string, err error) {
	v := newView(t, tools)
	v.Pack = &pack
	return pair("solve_system.tmpl", "solve_problem.tmpl", v)
}

func newView(t schemas.Task, tools []schemas.ToolSchema) view {
	v := view{Instructions: t.Instructions, Entrypoint: t.Entrypoint, Workdir: t.Workdir}
	for _, tool := range tools {
		v.tools = append(v.tools, tool.Name)
	}
	return v
}

func pair(first, second string, v view) (system, problem string, err error) {
	if system, err = render(first, v); err != nil {
		return "", "", err
	}
	problem, err = render(second, v)
	return system, problem, err
}

func render(name string, v view) (string, error) {
	var out strings.Builder
	if err := templates.ExecuteTemplate(&out, name, v); err != nil {
		return "", fmt.Errorf("rendering prompt %s: %w", name, err)
	}
	return strings.TrimSpace(out.String()), nil
}

// steps names steps: "step 3", "steps 3, 5".
func steps(numbers []int) string {
	var out []string
	for _, n := range numbers {
		out = append(out, strconv.Itoa(n))
	}
	if len(out) == 1 {
		return "step " + out[0]
	}
	return "steps " + strings.Join(out, ", ")
}

// indent sets a text off from the one around it.
func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }
