package prompts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents/prompts"
	"github.com/tracesmith/tracesmith/schemas"
)

// Numbers such as F3 in the names of tests are rows of docs/internals/parity.md.

// write creates files in a new directory and returns the directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func opening(t *testing.T, files prompts.Files) (system, problem string, err error) {
	t.Helper()
	s, err := prompts.Load(files)
	if err != nil {
		return "", "", err
	}
	return s.Opening("react", prompts.Model{Name: "m-1", ContextLimit: 30}, schemas.Task{InstanceID: "one", Instructions: "Fix <it> & go.", Entrypoint: "pytest", Workdir: "/testbed"}, tools("eval"))
}

// A template can include files by paths relative to itself, at any depth and outside its
// own directory. It can also use what included files define, and the built-in templates.
func TestF3TemplatesOfFiles(t *testing.T) {
	dir := write(t, map[string]string{
		"a/system.tmpl":       `{{template "../lib/macros.tmpl" .}}{{template "greet" .InstanceID}} {{template "parts/rules.tmpl" .}}{{if .Has "eval"}} Call eval.{{end}}{{if .Has "pdb"}} Call pdb.{{end}}`,
		"a/parts/rules.tmpl":  `Rules: {{template "one.tmpl" .}} {{include "one.tmpl" . | trim_message "3 characters" "end"}}`,
		"a/parts/one.tmpl":    `be brief in {{.Workdir}}.`,
		"lib/macros.tmpl":     `{{define "greet"}}Hello {{.}}.{{end}}`,
		"problem.tmpl":        `{{template "react_problem.tmpl" .}} {{(index .Tools 0).Name | to_pretty_json}}`,
		"a/parts/unused.tmpl": `{{.Nonsense}}`,
	})
	system, problem, err := opening(t, prompts.Files{System: filepath.Join(dir, "a/system.tmpl"), Problem: filepath.Join(dir, "problem.tmpl")})
	if err != nil {
		t.Fatal(err)
	}
	if want := "Hello one. Rules: be brief in /testbed. be… Call eval."; system != want {
		t.Errorf("system %q, want %q", system, want)
	}
	if want := "Fix <it> & go.\n\nThe tests are run with: pytest\n \"eval\""; problem != want {
		t.Errorf("problem %q, want %q", problem, want)
	}
	// A file for one prompt leaves the other prompt as it is.
	system, problem, err = opening(t, prompts.Files{Problem: filepath.Join(dir, "problem.tmpl")})
	if err != nil || !strings.HasPrefix(system, "You are an expert Python debugger.") || !strings.HasSuffix(problem, `"eval"`) {
		t.Errorf("%q, %q, %v", system, problem, err)
	}
}

// An error in a template names the setting and the file and, if there is one, the line.
func TestF3TemplateErrors(t *testing.T) {
	dir := write(t, map[string]string{
		"syntax.tmpl": "a\n{{if}}", "field.tmpl": "a\n\n{{.Gold}}", "missing.tmpl": "\n{{template \"nowhere.tmpl\" .}}",
		"self.tmpl": `{{template "other.tmpl" .}}`, "other.tmpl": `{{include "self.tmpl" .}}`,
		"dynamic.tmpl": "{{include .Workdir .}}", "function.tmpl": "\n{{upper .Workdir}}",
		"limit.tmpl": `{{trim_message "many" "end" .Workdir}}`, "where.tmpl": `{{trim_message "1 tokens" "left" .Instructions}}`,
		"empty.tmpl": "{{if .Has \"pdb\"}}x{{end}}", "outer.tmpl": `{{template "broken/inner.tmpl" .}}`, "broken/inner.tmpl": "\n\n{{.Nothing}}",
		"loop.tmpl": `{{template "g.tmpl" .}}{{template "x" .}}`, "g.tmpl": `{{define "x"}}{{include "h.tmpl" .}}{{end}}`, "h.tmpl": `{{template "x" .}}`,
		"endless.tmpl": `{{range 100000000}}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{{end}}`,
	})
	for name, want := range map[string]string{
		"syntax.tmpl": "syntax.tmpl:2:", "field.tmpl": "field.tmpl:3:", "missing.tmpl": "missing.tmpl:2: there is no file",
		"self.tmpl": "self.tmpl uses itself", "dynamic.tmpl": "dynamic.tmpl:1:", "function.tmpl": `function.tmpl:2: function "upper" not defined`,
		"limit.tmpl": `"many" is not a limit: write "200 tokens"`, "where.tmpl": `"left" is not a place: write start, middle or end`,
		"outer.tmpl": "inner.tmpl:3:", "gone.tmpl": "no such file", "loop.tmpl": "more than 100 deep", "endless.tmpl": "longer than 4 MiB",
	} {
		_, _, err := opening(t, prompts.Files{System: filepath.Join(dir, name)})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "agent.prompts") {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if _, _, err := opening(t, prompts.Files{System: filepath.Join(dir, "empty.tmpl"), Problem: filepath.Join(dir, "empty.tmpl")}); err == nil || !strings.Contains(err.Error(), "both prompts are empty") {
		t.Error(err)
	}
}

// A limit can be a percentage of the model's context. Templates can use the model's name.
func TestF7TemplatesTrimToAPercentageOfTheContext(t *testing.T) {
	dir := write(t, map[string]string{
		"part.tmpl":  `{{.Model}} {{.ContextLimit}}: {{trim_message "10%" "end" "one two three four five six"}}`,
		"whole.tmpl": `{{trim_message "100%" "end" "one two three four five six"}}`,
		"more.tmpl":  `{{trim_message "101%" "end" "one"}}`, "words.tmpl": `{{trim_message "10% tokens" "end" "one"}}`,
	})
	for name, want := range map[string]string{"part.tmpl": "m-1 30: one two …", "whole.tmpl": "one two three four five six"} {
		if system, _, err := opening(t, prompts.Files{System: filepath.Join(dir, name)}); err != nil || system != want {
			t.Errorf("%s: %q, %v, want %q", name, system, err, want)
		}
	}
	for _, name := range []string{"more.tmpl", "words.tmpl"} {
		if _, _, err := opening(t, prompts.Files{System: filepath.Join(dir, name)}); err == nil || !strings.Contains(err.Error(), "is not a limit") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := prompts.Load(prompts.Files{System: filepath.Join(dir, "part.tmpl")})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Opening("react", prompts.Model{}, schemas.Task{}, nil); err == nil || !strings.Contains(err.Error(), "set context_limit of the model") {
		t.Errorf("a percentage of an unknown context: %v", err)
	}
}

// The version contains the names of a user's files and hashes of their content, but not
// their directory.
func TestVersionNamesFiles(t *testing.T) {
	version := func(rules string) string {
		dir := write(t, map[string]string{"s.tmpl": `{{template "rules.tmpl"}}`, "rules.tmpl": rules})
		s, err := prompts.Load(prompts.Files{System: filepath.Join(dir, "s.tmpl")})
		if err != nil {
			t.Fatal(err)
		}
		return s.Version()
	}
	one, same, other := version("a"), version("a"), version("b")
	if one != same || one == other || !strings.HasPrefix(one, prompts.Default().Version()+" system:s.tmpl@") || !strings.Contains(one, " rules.tmpl@") {
		t.Errorf("%s, %s, %s", one, same, other)
	}
}

// Without files, the problem prompt consists of the instructions and the command that runs
// the tests.
func TestF4DefaultProblem(t *testing.T) {
	_, problem, err := opening(t, prompts.Files{})
	if want := "Fix <it> & go.\n\nThe tests are run with: pytest"; err != nil || problem != want {
		t.Errorf("%q, %v", problem, err)
	}
}

// The default prompt mentions the tools that the agent has, and no others. The same tools
// give the same text.
func TestF8DefaultPromptFollowsTheTools(t *testing.T) {
	systemPrompt := func(names ...string) string {
		system, _, err := prompts.Default().Opening("react", prompts.Model{Name: "m-1", ContextLimit: 30}, schemas.Task{Instructions: "Fix it.", Workdir: "/testbed"}, tools(names...))
		if err != nil {
			t.Fatal(err)
		}
		return system
	}
	for tool, words := range map[string]string{"pdb": "breakpoint", "eval": "eval", "submit": "submit"} {
		if with, without := systemPrompt("bash", tool), systemPrompt("bash"); !strings.Contains(with, words) || strings.Contains(without, words) {
			t.Errorf("%s: with it %q, without %q", tool, with, without)
		}
	}
	if diff := cmp.Diff(systemPrompt("pdb", "eval"), systemPrompt("pdb", "eval")); diff != "" {
		t.Error(diff)
	}
}
