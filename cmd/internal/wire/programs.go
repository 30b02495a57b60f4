package wire

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// requiredPrograms lists the programs that tools need in a sandbox; other tools need
// only the guest.
var requiredPrograms = []struct {
	program string
	tools   []string
}{
	{"bash", []string{"bash", "pdb", "eval"}},
	{"python3", []string{"pdb"}},
}

// checkPrograms returns an error if a sandbox lacks programs that the offered tools need.
// The error names the image, the programs and the tools.
func (w *Workbench) checkPrograms(ctx context.Context, sb env.Sandbox) error {
	var missing, affected []string
	for _, n := range requiredPrograms {
		needing := slices.DeleteFunc(slices.Clone(n.tools), func(name string) bool {
			return !slices.ContainsFunc(w.Toolbox.Schemas(), func(t schemas.ToolSchema) bool { return t.Name == name })
		})
		if len(needing) == 0 {
			continue
		}
		r, err := sb.Run(ctx, env.Command{Args: []string{n.program, "--version"}, Dir: "/"})
		if err != nil {
			return err
		}
		if r.ExitCode == 127 {
			missing, affected = append(missing, n.program), append(affected, needing...)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(affected)
	where := "the sandbox"
	if image := sb.Key().Image; image != "" {
		where = "image " + image
	}
	return fmt.Errorf("%s lacks %s, which the tools %s need: install them (Debian: apt-get install bash python3), or offer other tools (agent.tools)",
		where, strings.Join(missing, " and "), strings.Join(slices.Compact(affected), ", "))
}
