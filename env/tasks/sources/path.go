package sources

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// PathConfig configures a source with one task: a program on disk. The task has no lists of tests; a baseline run finds
// the failing tests.
type PathConfig struct {
	Path             string   `json:"path"`              // directory of the program
	Entrypoint       string   `json:"entrypoint"`        // shell command that shows the bug
	DebugEntrypoint  string   `json:"debug_entrypoint"`  // what the debugger runs; unset = entrypoint
	Instructions     string   `json:"instructions"`      // instructions for the agent: how the bug shows itself
	InstructionsFile string   `json:"instructions_file"` // file with the instructions
	Setup            []string `json:"setup"`             // commands that install the program's dependencies
	Python           string   `json:"python"`            // interpreter; see sandbox.python
	Image            string   `json:"image"`             // container image
	InstanceID       string   `json:"instance_id"`       // name of the task; unset = the name of the directory
}

func init() {
	register("path", "one program in a directory, with the command that fails", nil, newPath)
}

func newPath(cfg PathConfig) (env.Source, error) {
	if err := checkDirectory(cfg.Path); err != nil {
		return nil, err
	}
	if strings.TrimSpace(cfg.Entrypoint) == "" {
		return nil, errors.New(`the setting "entrypoint" is missing: give the command that shows the bug, such as "python3 -m pytest -q"`)
	}
	if cfg.Instructions != "" && cfg.InstructionsFile != "" {
		return nil, errors.New(`give "instructions" or "instructions_file", not both`)
	}
	if cfg.InstanceID == "" {
		name, err := filepath.Abs(cfg.Path)
		if err != nil {
			return nil, err
		}
		cfg.InstanceID = instanceName(filepath.Base(name))
	}
	if !taskfile.InstancePattern.MatchString(cfg.InstanceID) {
		return nil, fmt.Errorf("instance_id %q: want up to 128 letters, digits or . _ + -", cfg.InstanceID)
	}
	return &taskSource{name: "path", read: cfg.read}, nil
}

func (cfg PathConfig) read(context.Context) ([]placedTask, error) {
	instructions := cfg.Instructions
	if cfg.InstructionsFile != "" {
		file := filepath.Clean(cfg.InstructionsFile)
		data, err := readBounded(os.DirFS(filepath.Dir(file)), filepath.Base(file))
		if err != nil {
			return nil, fmt.Errorf("reading instructions: %w", err)
		}
		instructions = string(data)
	}
	if strings.TrimSpace(instructions) == "" {
		instructions = fmt.Sprintf("Running `%s` in this directory fails. Find the cause in the program, "+
			"not in its tests, and fix it so that the command succeeds.\n", cfg.Entrypoint)
	}
	files, err := workspace.FromDir(cfg.Path)
	if err != nil {
		return nil, err
	}
	if len(files.Paths()) == 0 {
		return nil, fmt.Errorf("%s is empty: name the directory of a program", cfg.Path)
	}
	return []placedTask{newPlacedTask(schemas.Task{
		InstanceID: cfg.InstanceID, Instructions: instructions,
		Entrypoint: cfg.Entrypoint, DebugEntrypoint: cfg.DebugEntrypoint,
		Setup: cfg.Setup, Python: cfg.Python, Image: cfg.Image,
	}, "path", files)}, nil
}

// instanceName returns an instance id for a directory name.
func instanceName(name string) string {
	id := strings.Map(func(r rune) rune {
		if taskfile.InstancePattern.MatchString("a" + string(r)) {
			return r
		}
		return '-'
	}, name)
	id = strings.TrimLeft(id, "._+-")
	if id == "" {
		return "program"
	}
	return id[:min(len(id), 128)]
}
