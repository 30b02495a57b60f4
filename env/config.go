package env

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// DefaultToolTimeout bounds one tool call where Config says nothing.
const DefaultToolTimeout = 30 * time.Second

// Config is what an Environment is made of. Debugger, evaluation and workspace
// are handed in, so that this package imports none of them.
type Config struct {
	Driver Driver
	// Spec is the base of every sandbox; Workdir, Image and Python are taken
	// from the task where Spec leaves them open.
	Spec    SandboxSpec
	Task    schemas.Task // only what is Public of it is kept: nothing below may know more
	Tree    Tree
	Toolbox Toolbox
	// Workspace places a tree and tells what became of it.
	Workspace Workspace
	// NewDebugger makes the debugger of one sandbox; it starts nothing yet.
	NewDebugger func(Sandbox, schemas.Task) Debugger
	// Evaluate runs the task's tests in the agent's sandbox, for limit at most; 0
	// leaves the limit to it.
	Evaluate func(ctx context.Context, sb Sandbox, t schemas.Task, limit time.Duration) (EvalReport, error)
	// CommandTimeout bounds one tool call; 0 = DefaultToolTimeout.
	CommandTimeout time.Duration
}

// Workspace turns a tree into what is unpacked at Workdir, and what is found
// there later into a patch. env/workspace implements it. Safe for concurrent use.
type Workspace interface {
	// Placement writes the tar to unpack: the tree and a .git of one commit.
	Placement(ctx context.Context, tree Tree, w io.Writer) error
	// Diff compares the tree with the tar stream of a final workspace. New files
	// that are too large for a patch are left out of patch and tree.
	Diff(ctx context.Context, tree Tree, final io.Reader) (patch []byte, treeSHA string, left []schemas.LeftOut, err error)
}

// Hashing is a Workspace that can name the tree it places.
type Hashing interface {
	// Base returns the hash of tree.
	Base(ctx context.Context, tree Tree) (treeSHA string, err error)
}

func (c Config) validate() error {
	for name, missing := range map[string]bool{
		"Driver": c.Driver == nil, "Tree": c.Tree == nil, "Toolbox": c.Toolbox == nil,
		"Workspace": c.Workspace == nil, "NewDebugger": c.NewDebugger == nil, "Evaluate": c.Evaluate == nil,
	} {
		if missing {
			return fmt.Errorf("environment without a %s", name)
		}
	}
	return nil
}

// withDefaults fills what the task decides.
func (c Config) withDefaults() Config {
	c.Task = c.Task.Public()
	if c.Task.Workdir == "" {
		c.Task.Workdir = schemas.DefaultWorkdir
	}
	if c.Spec.Workdir == "" {
		c.Spec.Workdir = c.Task.Workdir
	}
	if c.Spec.Image == "" {
		c.Spec.Image = c.Task.Image
	}
	if c.Spec.Python == "" {
		c.Spec.Python = c.Task.Python
	}
	if c.CommandTimeout <= 0 {
		c.CommandTimeout = DefaultToolTimeout
	}
	return c
}
