package cli

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/configs/nearest"
)

// similar returns the name that the user probably meant: the nearest one within two
// changes (fewer for a short name), or the first that begins with what they wrote. It
// returns "" if there is none. Two swapped letters are two changes, so among names that
// far away it prefers one with the same first letter: for "rnu", run to env.
func similar(wrong string, names []string) string {
	wrong = strings.ToLower(wrong)
	if wrong == "" {
		return ""
	}
	var alike []string
	for _, name := range names {
		if strings.HasPrefix(name, wrong[:1]) {
			alike = append(alike, name)
		}
	}
	within := min(2, (len(wrong)+1)/2)
	if near := cmp.Or(nearest.Name(wrong, names, 1), nearest.Name(wrong, alike, within), nearest.Name(wrong, names, within)); near != "" || len(wrong) < 2 {
		return near
	}
	for _, name := range names {
		if strings.HasPrefix(name, wrong) {
			return name
		}
	}
	return ""
}

// unknownFlag matches what pflag says about "--max-cots" and about "-max-cost", which it
// reads as a group of short flags.
var unknownFlag = regexp.MustCompile(`^(?:unknown flag: --|unknown shorthand flag: '.' in -)([^=]{2,})`)

// suggestFlag returns ": did you mean ...?" for a message about an unknown flag of c, or
// "" if no visible flag is similar.
func suggestFlag(c *cobra.Command, message string) string {
	wrong := unknownFlag.FindStringSubmatch(message)
	if wrong == nil {
		return ""
	}
	var names []string
	for _, f := range visited(c.Flags().VisitAll) {
		if !f.Hidden && f.Deprecated == "" {
			names = append(names, f.Name)
		}
	}
	if near := similar(wrong[1], names); near != "" {
		return fmt.Sprintf(": did you mean %q?", "--"+near)
	}
	return ""
}

// visited lists what a visitor visits.
func visited[T any](visit func(func(T))) (all []T) {
	visit(func(item T) { all = append(all, item) })
	return all
}
