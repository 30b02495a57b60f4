package sources

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	register("aider", "exercism's Python track: small exercises with their tests, from a clone on this machine", nil, func(c CollectionConfig) (env.Source, error) {
		return &taskSource{name: "aider", read: func(ctx context.Context) ([]placedTask, error) { return readAider(ctx, c) }}, nil
	})
}

// practice is the directory of the exercises in a clone of exercism/python.
const practice = "exercises/practice/"

func readAider(ctx context.Context, cfg CollectionConfig) ([]placedTask, error) {
	all, err := openCollection(ctx, cfg, `set "path" to a clone of github.com/exercism/python`)
	if err != nil {
		return nil, err
	}
	root, found := "", false
	names := map[string]bool{}
	for _, p := range all.Paths() {
		before, rest, ok := strings.Cut(p, practice)
		if ok && (before == "" || strings.HasSuffix(before, "/")) && strings.HasSuffix(rest, "/.meta/config.json") && strings.Count(rest, "/") == 2 {
			root, found = before+practice, true
			names[strings.TrimSuffix(rest, "/.meta/config.json")] = true
		}
	}
	if !found {
		return nil, fmt.Errorf("%s has no %s*/.meta/config.json: set \"path\" to a clone of github.com/exercism/python", cfg.Path, practice)
	}
	var list []placedTask
	for _, name := range sortedKeys(names) {
		p, err := aiderTask(all, root+name, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", cfg.Path, root+name, err)
		}
		list = append(list, p)
	}
	return cfg.pick(list)
}

// aiderTask makes a task from an exercise. The files in .docs become the instructions. The agent does not get .meta and
// .approaches, which contain solutions.
func aiderTask(all *workspace.Tree, dir, name string) (placedTask, error) {
	var meta struct {
		Files struct{ Solution, Test, Example []string }
	}
	text, _, _, err := all.File(dir + "/.meta/config.json")
	if err != nil {
		return placedTask{}, err
	}
	if err := json.Unmarshal(text, &meta); err != nil {
		return placedTask{}, fmt.Errorf(".meta/config.json: %w", err)
	}
	if len(meta.Files.Test) == 0 || len(meta.Files.Solution) == 0 {
		return placedTask{}, fmt.Errorf(".meta/config.json lacks a test file or a solution file")
	}
	var instructions strings.Builder
	for _, doc := range []string{"introduction.md", "instructions.md", "instructions.append.md"} {
		if text, _, _, err := all.File(dir + "/.docs/" + doc); err == nil {
			instructions.WriteString(strings.TrimRight(string(text), "\n") + "\n\n")
		}
	}
	files, err := all.Sub(dir, func(p string) bool { return !strings.HasPrefix(p, ".") })
	if err != nil {
		return placedTask{}, err
	}
	gold, err := goldPatch(all, dir, meta.Files.Solution, meta.Files.Example)
	if err != nil {
		return placedTask{}, err
	}
	t := schemas.Task{
		InstanceID: strings.ReplaceAll(name, "-", "_"), Repo: "exercism/python", License: "MIT", BugKind: "exercise",
		Instructions: strings.TrimSpace(instructions.String()) + "\n", GoldPatch: gold,
		Entrypoint: "python3 -m pytest --tb=short -q " + strings.Join(meta.Files.Test, " "),
		Origin:     &schemas.Origin{UpstreamRepo: "github.com/exercism/python", License: "MIT"},
	}
	t.Tests.Files = slices.Concat(meta.Files.Test, taskfile.DefaultTestFiles())
	if p := taskfile.Problems(t); len(p) > 0 {
		return placedTask{}, fmt.Errorf("%s", p[0].Text)
	}
	return newPlacedTask(t, "aider", files), nil
}

// goldPatch returns the patch from the stubs to the example solution, or "" if there is no example.
func goldPatch(all *workspace.Tree, dir string, solution, example []string) (string, error) {
	var out strings.Builder
	for _, file := range example {
		after, _, _, err := all.File(dir + "/" + file)
		if err != nil {
			return "", err
		}
		// A single example is the solution and may have any name. Several examples have the names of the files they
		// replace.
		at := slices.IndexFunc(solution, func(s string) bool { return path.Base(s) == path.Base(file) })
		if at < 0 && len(example) == 1 {
			at = 0
		}
		if at < 0 {
			continue
		}
		before, _, _, err := all.File(dir + "/" + solution[at])
		if err != nil {
			return "", err
		}
		out.WriteString(fileDiff(solution[at], string(before), string(after)))
	}
	return out.String(), nil
}
