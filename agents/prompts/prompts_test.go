package prompts_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents/handover"
	"github.com/tracesmith/tracesmith/agents/prompts"
	"github.com/tracesmith/tracesmith/schemas"
)

var update = flag.Bool("update", false, "rewrite the golden files; raise version in prompts.go first")

func tools(names ...string) []schemas.ToolSchema {
	var out []schemas.ToolSchema
	for _, n := range names {
		out = append(out, schemas.ToolSchema{Name: n, Description: "Does " + n + ".",
			Parameters: json.RawMessage(`{"type":"object","required":["what"],"properties":{"what":{"type":"string","description":"a thing"},"times":{"type":"integer"}}}`)})
	}
	return out
}

func TestGolden(t *testing.T) {
	task := schemas.Task{
		Instructions: "\nTotals of <large> carts & orders are wrong.\n", Entrypoint: "python -m pytest -q",
		Workdir: "/testbed", GoldPatch: "GOLD",
	}
	pack := handover.Pack{Cause: "total() rounds <each> line.", CauseSteps: []int{5, 9}, Files: []handover.Excerpt{
		{Path: "cart.py", Start: 9, End: 10, Step: 5, Tool: "view", Note: "the rounding", Lines: []handover.Line{{Number: 9, Text: "def total(lines):"}, {Number: 10, Text: "    return sum(round(l) for l in lines)"}}},
		{Path: "cart.py", Start: 100, End: 100, Step: 6, Tool: "grep", Lines: []handover.Line{{Number: 100, Text: ""}}},
	}, Values: []handover.Value{{Expression: "lines", Value: "[0.335,\n 0.335]", Step: 9, Tool: "pdb", Note: "before"}, {Expression: "total(lines)", Value: "0.66", Step: 9, Tool: "pdb"}}}
	all := prompts.Default()
	opening := func(agent string, set ...string) func() (string, string, error) {
		return func() (string, string, error) { return all.Opening(agent, prompts.Model{}, task, tools(set...)) }
	}
	for name, open := range map[string]func() (string, string, error){
		"react_full.txt":  opening("react", "bash", "view", "eval", "pdb", "grep", "listdir", "edit", "submit"),
		"react_bare.txt":  opening("react", "bash"),
		"simple_bare.txt": opening("simple", "bash", "submit"),
		"seek_full.txt": func() (string, string, error) {
			return all.Seek(prompts.Model{}, task, tools("view", "grep", "pdb", "handover"), 30)
		},
		"seek_bare.txt": func() (string, string, error) { return all.Seek(prompts.Model{}, task, tools("view", "handover"), 0) },
		"solve_full.txt": func() (string, string, error) {
			return all.Solve(prompts.Model{}, task, tools("view", "edit", "eval", "submit"), pack)
		},
		"solve_bare.txt": func() (string, string, error) {
			pack := pack
			pack.CauseSteps, pack.Values = pack.CauseSteps[:1], nil
			return all.Solve(prompts.Model{}, task, tools("edit", "submit"), pack)
		},
	} {
		system, problem, err := open()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(system+problem, "GOLD") || strings.Contains(system, "{{") {
			t.Errorf("%s: privileged or unrendered text", name)
		}
		got := all.Version() + "\n--- system\n" + system + "\n--- problem\n" + problem + "\n"
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s differs; if this is intended, raise version in prompts.go and run the test with -update:\n%s", name, diff)
		}
	}
}
