package prompts_test

import (
	"path/filepath"
	"testing"

	"github.com/tracesmith/tracesmith/agents/prompts"
)

// Templates ask for tools and print them anywhere, although templates cannot call methods.
func TestTemplatesAskForTools(t *testing.T) {
	dir := write(t, map[string]string{
		"system.tmpl": `{{if and (.Has "eval") (not (.Has "pdb"))}}a{{end}}{{$view := .}}{{with .Workdir}}{{if $.Has "eval"}}b{{end}}{{$view.Has "pdb"}}{{end}}` +
			`{{range .Tools}}{{$.Has .Name}}{{else}}none{{end}}{{"eval" | .Has}}{{define "part"}}{{.Has "eval"}}{{end}}{{template "part" .}}`,
		"problem.tmpl": `{{if .Describe}}described{{end}}`,
	})
	system, problem, err := opening(t, prompts.Files{System: filepath.Join(dir, "system.tmpl"), Problem: filepath.Join(dir, "problem.tmpl")})
	if want := "abfalsetruetruetrue"; err != nil || system != want || problem != "described" {
		t.Errorf("%q and %q, want %q: %v", system, problem, want, err)
	}
}
