package cli

import (
	"cmp"
	"strings"

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
