package cli

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/configs/nearest"
)

// similar returns the name that the user probably meant: the nearest name within two changes
// (fewer if wrong is short), or else the first name that begins with wrong, if wrong has at least
// two letters. It returns "" if there is no such name. Two swapped letters count as two changes.
// Among names two changes away it prefers names with the same first letter: for "rnu" it returns
// run, not env.
func similar(wrong string, names []string) string {
	wrong = strings.ToLower(wrong)
	if wrong == "" {
		return ""
	}
	var sameInitial []string
	for _, name := range names {
		if strings.HasPrefix(name, wrong[:1]) {
			sameInitial = append(sameInitial, name)
		}
	}
	maxChanges := min(2, (len(wrong)+1)/2)
	if suggestion := cmp.Or(nearest.Name(wrong, names, 1), nearest.Name(wrong, sameInitial, maxChanges), nearest.Name(wrong, names, maxChanges)); suggestion != "" || len(wrong) < 2 {
		return suggestion
	}
	for _, name := range names {
		if strings.HasPrefix(name, wrong) {
			return name
		}
	}
	return ""
}

// unknownFlag matches pflag's message about an unknown flag, such as --max-cots, and its
// message about a long flag with one dash, such as -max-cost, which pflag reads as a group of
// short flags.
var unknownFlag = regexp.MustCompile(`^(?:unknown flag: --|unknown shorthand flag: '.' in -)([^=]{2,})`)

// flagTypes says what the values of flags look like, by pflag's name of their type.
var flagTypes = map[string]string{"int": "a whole number", "float64": "a number", "duration": "a duration, such as 90s or 24h", "bool": "true or false"}

// suggestFlag returns ": did you mean ...?" for a message about an unknown flag of c, or
// "" if no visible flag is similar.
func suggestFlag(c *cobra.Command, message string) string {
	wrong := unknownFlag.FindStringSubmatch(message)
	if wrong == nil {
		return ""
	}
	var names []string
	for _, f := range collect(c.Flags().VisitAll) {
		if !f.Hidden && f.Deprecated == "" {
			names = append(names, f.Name)
		}
	}
	if suggestion := similar(wrong[1], names); suggestion != "" {
		return fmt.Sprintf(": did you mean %q?", "--"+suggestion)
	}
	return ""
}

// collect returns the items that visit passes to its argument.
func collect[T any](visit func(func(T))) (all []T) {
	visit(func(item T) { all = append(all, item) })
	return all
}
