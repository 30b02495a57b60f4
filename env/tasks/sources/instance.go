package sources

import (
	"slices"

	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// instance is one task of a dataset before its tree is known.
type instance struct {
	task         schemas.Task
	repo, commit string // of its tree, see repositories
	version      string // of the repository, for recipes
	where        string // its row
	conda        bool   // the official image has its interpreter in conda's "testbed"
	// change turns the repository's tree into the agent's; nil changes nothing.
	change func(*workspace.Tree) (*workspace.Tree, error)
}

// exclude removes tests from the lists and records the reason of each.
func (in *instance) exclude(why map[string]string) {
	out := func(ids []string) []string {
		return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
			reason, gone := why[id]
			if gone {
				if in.task.Tests.Excluded == nil {
					in.task.Tests.Excluded = map[string]string{}
				}
				in.task.Tests.Excluded[id] = reason
			}
			return gone
		})
	}
	in.task.Tests.FailToPass, in.task.Tests.PassToPass = out(in.task.Tests.FailToPass), out(in.task.Tests.PassToPass)
}
