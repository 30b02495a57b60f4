package sources

import (
	"slices"

	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// instance is a task of a dataset before its repository is read.
type instance struct {
	task         schemas.Task
	repo, commit string // identify the files of the task, see repositories
	version      string // version of the repository, for recipes
	where        string // place of the row, for messages
	conda        bool   // the interpreter of the official image is in the conda environment "testbed"
	// change turns the files of the repository into those that the agent gets; nil = they are the same.
	change func(*workspace.Tree) (*workspace.Tree, error)
}

// exclude removes tests from the lists and records the reasons. reasons maps test ids to reasons.
func (in *instance) exclude(reasons map[string]string) {
	without := func(ids []string) []string {
		return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
			reason, excluded := reasons[id]
			if excluded {
				if in.task.Tests.Excluded == nil {
					in.task.Tests.Excluded = map[string]string{}
				}
				in.task.Tests.Excluded[id] = reason
			}
			return excluded
		})
	}
	in.task.Tests.FailToPass, in.task.Tests.PassToPass = without(in.task.Tests.FailToPass), without(in.task.Tests.PassToPass)
}
