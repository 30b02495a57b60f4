package env

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// DefaultToolTimeout is the default of Config.CommandTimeout.
const DefaultToolTimeout = 30 * time.Second

// Config holds the parts of an Environment. The debugger, the evaluation and the
// workspace are parameters, because their packages import this one.
type Config struct {
	Driver Driver
	// Spec describes every sandbox. The task supplies Workdir, Image and Python if Spec
	// leaves them empty.
	Spec SandboxSpec
	// Task is the task. New keeps only what Task.Public returns, so that no tool can see the fix.
	Task    schemas.Task
	Tree    Tree
	Toolbox Toolbox
	// Workspace places Tree in the sandbox and later computes the patch.
	Workspace Workspace
	// NewDebugger returns the debugger of one sandbox. It starts no process yet.
	NewDebugger func(Sandbox, schemas.Task) Debugger
	// Evaluate runs the task's tests in the agent's sandbox for at most limit; if limit
	// is 0, Evaluate uses its own default.
	Evaluate func(ctx context.Context, sb Sandbox, t schemas.Task, limit time.Duration) (EvalReport, error)
	// CommandTimeout limits one tool call; 0 = DefaultToolTimeout.
	CommandTimeout time.Duration
}

// Workspace converts a tree into the tar stream to unpack at Workdir, and the final
// contents of Workdir into a patch. Package env/workspace implements it. It is safe for
// concurrent use.
type Workspace interface {
	// Placement writes a tar stream with the tree and a .git directory of one commit.
	Placement(ctx context.Context, tree Tree, w io.Writer) error
	// Diff compares tree with the tar stream of a final workspace. New files that are
	// too large for a patch are in leftOut, and neither in patch nor in the tree that
	// treeSHA identifies.
	Diff(ctx context.Context, tree Tree, final io.Reader) (patch []byte, treeSHA string, leftOut []schemas.OmittedFile, err error)
}

// TreeHasher is a Workspace that can compute the hash of a tree that it places.
type TreeHasher interface {
	// Base returns the hash of tree, as Diff computes it.
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

// withDefaults fills empty settings from the task or with defaults, and removes from
// the task what tools must not see.
func (c Config) withDefaults() Config {
	c.Task = c.Task.Public()
	c.Task.Workdir = cmp.Or(c.Task.Workdir, schemas.DefaultWorkdir)
	c.Spec.Workdir = cmp.Or(c.Spec.Workdir, c.Task.Workdir)
	c.Spec.Image = cmp.Or(c.Spec.Image, c.Task.Image)
	c.Spec.Python = cmp.Or(c.Spec.Python, c.Task.Python)
	if c.CommandTimeout <= 0 {
		c.CommandTimeout = DefaultToolTimeout
	}
	return c
}
