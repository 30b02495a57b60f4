package wire

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// needed are the programs tools cannot do without; every other tool works
// through the guest alone.
var needed = []struct {
	program string
	tools   []string
}{
	{"bash", []string{"bash", "pdb", "eval"}},
	{"python3", []string{"pdb"}},
}

// equipped is an error where a sandbox lacks programs that the tools on offer
// need: it names the image, the programs and the tools.
func (w *Workbench) equipped(ctx context.Context, sb env.Sandbox) error {
	var lacks, idle []string
	for _, n := range needed {
		affected := slices.DeleteFunc(slices.Clone(n.tools), func(name string) bool {
			return !slices.ContainsFunc(w.Toolbox.Schemas(), func(t schemas.ToolSchema) bool { return t.Name == name })
		})
		if len(affected) == 0 {
			continue
		}
		r, err := sb.Run(ctx, env.Command{Args: []string{n.program, "--version"}, Dir: "/"})
		if err != nil {
			return err
		}
		if r.ExitCode == 127 {
			lacks, idle = append(lacks, n.program), append(idle, affected...)
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	slices.Sort(idle)
	where := "the sandbox"
	if image := sb.Key().Image; image != "" {
		where = "image " + image
	}
	return fmt.Errorf("%s lacks %s, which the tools %s need: use one that has them (Debian: apt-get install bash python3), or offer other tools (agent.tools)",
		where, strings.Join(lacks, " and "), strings.Join(slices.Compact(idle), ", "))
}
