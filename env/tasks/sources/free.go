package sources

import (
	"cmp"
	"context"
	"embed"
	"errors"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// FreeConfig configures an environment without tests, for exploration. Image, Path or both must be set.
type FreeConfig struct {
	Image        string   `json:"image"`        // container image; unset = sandbox.image
	Path         string   `json:"path"`         // directory that is copied to workdir; unset = an empty one
	Workdir      string   `json:"workdir"`      // working directory in the sandbox
	Setup        []string `json:"setup"`        // commands that install dependencies
	Entrypoint   string   `json:"entrypoint"`   // what eval and the debugger run; unset = nothing
	Instructions string   `json:"instructions"` // instructions for the agent
	InstanceID   string   `json:"instance_id"`  // name of the task
}

func init() {
	defaults := func() FreeConfig { return FreeConfig{InstanceID: "free", Workdir: schemas.DefaultWorkdir} }
	register("free", "any image or directory, to explore without tests", defaults, newFree)
}

func newFree(cfg FreeConfig) (env.Source, error) {
	if cfg.Image == "" && cfg.Path == "" {
		return nil, errors.New(`give "image", "path" or both: there is nothing to explore`)
	}
	if cfg.Path != "" {
		if err := checkDirectory(cfg.Path); err != nil {
			return nil, err
		}
	}
	t := schemas.Task{
		InstanceID: cfg.InstanceID, Image: cfg.Image, Workdir: cfg.Workdir, Setup: cfg.Setup,
		Entrypoint: cmp.Or(cfg.Entrypoint, "true"), Tests: schemas.TestSpec{Method: schemas.VerifyNone}, Visibility: schemas.TestsVisible,
		Instructions: cmp.Or(cfg.Instructions, "Explore this environment with the tools you have, and submit what you found.\n"),
	}
	if p := taskfile.Problems(t); len(p) > 0 {
		return nil, errors.New(p[0].Text)
	}
	return &taskSource{name: "free", read: func(context.Context) ([]placedTask, error) {
		files, err := workspace.FromFS(embed.FS{}, ".")
		if cfg.Path != "" {
			files, err = workspace.FromDir(cfg.Path)
		}
		if err != nil {
			return nil, err
		}
		return []placedTask{newPlacedTask(t, "free", files)}, nil
	}}, nil
}
