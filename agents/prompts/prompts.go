// Package prompts holds the words a policy opens an episode with. They are part
// of the dataset: a changed word is a new version, and golden files show it.
// Templates are embedded, parsed once, and fail on anything they do not know.
// It imports schemas only.
package prompts

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/tracesmith/tracesmith/schemas"
)

//go:embed *.tmpl
var files embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").
	Funcs(template.FuncMap{"trim": strings.TrimSpace}).ParseFS(files, "*.tmpl"))

// number counts changes made on purpose.
const number = "1"

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
	tools        []string
}

// Has tells whether the agent has a tool.
func (v view) Has(tool string) bool { return slices.Contains(v.tools, tool) }

// Seeker is the pair of opening messages of an agent that gathers facts before
// it changes anything: the system prompt and the problem.
func Seeker(t schemas.Task, tools []schemas.ToolSchema) (system, problem string, err error) {
	v := view{Instructions: t.Instructions, Entrypoint: t.Entrypoint, Workdir: t.Workdir}
	for _, tool := range tools {
		v.tools = append(v.tools, tool.Name)
	}
	if system, err = render("seeker_system.tmpl", v); err != nil {
		return "", "", err
	}
	problem, err = render("seeker_problem.tmpl", v)
	return system, problem, err
}

func render(name string, v view) (string, error) {
	var out strings.Builder
	if err := templates.ExecuteTemplate(&out, name, v); err != nil {
		return "", fmt.Errorf("rendering prompt %s: %w", name, err)
	}
	return strings.TrimSpace(out.String()), nil
}
