// Package lab holds the commands of tracesmith-lab: measurements of tracesmith on this
// machine and of what its data teaches, long runs of its environment, and faults injected into whole runs. Users of
// tracesmith do not need them, so tracesmith does not contain them.
package lab

import (
	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/cli"
)

// Root returns the root command of tracesmith-lab. It includes the commands of tracesmith,
// because the experiments run them as child processes.
func Root(s *cli.State) *cobra.Command {
	root := cli.Tracesmith(s)
	root.Use = "tracesmith-lab"
	root.Short = "Measure tracesmith, and prove that it loses nothing"
	root.Long = "tracesmith-lab is tracesmith with four more commands: bench measures speed on\n" +
		"this machine, soak makes thousands of tool calls and debugger sessions, chaos\n" +
		"injects faults into a run and checks the result, and learn measures whether\n" +
		"trajectories teach where to look."
	root.AddGroup(&cobra.Group{ID: "lab", Title: "Experiments:"})
	for _, c := range []*cobra.Command{newBench(s), newSoak(s), newChaos(s), newLearn(s)} {
		c.GroupID = "lab"
		root.AddCommand(c)
	}
	return root
}
