package prompts_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents/prompts"
	"github.com/tracesmith/tracesmith/schemas"
)

var update = flag.Bool("update", false, "rewrite the golden files; then raise the number in prompts.go")

func tools(names ...string) []schemas.ToolSchema {
	var out []schemas.ToolSchema
	for _, n := range names {
		out = append(out, schemas.ToolSchema{Name: n})
	}
	return out
}

func TestGolden(t *testing.T) {
	task := schemas.Task{
		Instructions: "\nTotals of <large> carts & orders are wrong.\n", Entrypoint: "python -m pytest -q",
		Workdir: "/testbed", GoldPatch: "GOLD",
	}
	for name, set := range map[string][]schemas.ToolSchema{
		"seeker_full.txt": tools("bash", "view", "eval", "pdb", "grep", "listdir", "edit", "submit"),
		"seeker_bare.txt": tools("bash"),
	} {
		system, problem, err := prompts.Seeker(task, set)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(system+problem, "GOLD") || strings.Contains(system, "{{") {
			t.Errorf("%s: privileged or unrendered text", name)
		}
		got := prompts.Version() + "\n--- system\n" + system + "\n--- problem\n" + problem + "\n"
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
			t.Errorf("%s differs; if that is meant, run with -update and raise the number:\n%s", name, diff)
		}
	}
}
