package builtin

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

type listdirArgs struct {
	Path  *string `json:"path,omitempty" jsonschema:"Directory to list, relative to the workspace. Default: the workspace itself."`
	Depth *int    `json:"depth,omitempty" jsonschema:"Number of levels to show, 1 to 20. Default: 1, only the directory's own entries."`
}

type listdirSettings struct {
	tools.Settings
	// Globs of directory names whose contents are omitted; unset = the same as for grep.
	Ignore []string `json:"ignore,omitempty"`
}

func init() {
	dir, depth := "src", 2
	register("list a directory tree", func(c listdirSettings) (tools.Def[listdirArgs], error) {
		var err error
		c.Ignore, err = ignoreGlobs(c.Ignore)
		return tools.Def[listdirArgs]{
			Name: "listdir", Category: "listdir",
			Description: "List the files and directories in the workspace, including hidden ones, as an indented tree in " +
				"natural order (a2 before a10). The names of directories end with /, those of executable files with *; symbolic links " +
				"show their targets and are not followed." + formatNames(c.Ignore, " The contents of directories named %s are omitted."),
			Example:        listdirArgs{Path: &dir, Depth: &depth},
			TruncationHint: listdirRemedy,
			Call:           c.call,
		}, err
	})
}

const (
	listdirMaxDepth   = 20
	listdirMaxEntries = 1000

	// listdirRemedy tells the model how to see the omitted entries.
	listdirRemedy = "list a subdirectory, or use a smaller depth"
)

func (c listdirSettings) call(ctx context.Context, s *env.Session, a listdirArgs) (schemas.Observation, error) {
	arg, depth := ".", 1
	if a.Path != nil && strings.TrimSpace(*a.Path) != "" {
		arg = *a.Path
	}
	if a.Depth != nil {
		depth = min(*a.Depth, listdirMaxDepth)
	}
	if depth < 1 {
		return schemas.Observation{}, tools.NewUserError("depth=%d is too small. Give a number from 1 to %d.", depth, listdirMaxDepth)
	}
	p, err := locate(ctx, s, arg)
	switch {
	case err != nil:
		return schemas.Observation{}, err
	case !p.Exists:
		return schemas.Observation{}, tools.NewUserError("%s does not exist.%s", p, suggestions(ctx, s, p.Rel))
	case !p.IsDir:
		return schemas.Observation{}, tools.NewUserError("%s is a file. Use view to read it: {\"path\": %q}", p, p.Rel)
	}
	spec := env.WalkSpec{Dir: p.Abs, Depth: depth, Ignore: c.Ignore, MaxEntries: listdirMaxEntries, Timeout: s.CommandTimeout}
	r, err := s.Sandbox.Walk(ctx, spec)
	if err != nil {
		return schemas.Observation{}, err
	}
	whole := r
	if spec.Depth = fittingLevels(r.Levels, listdirMaxEntries); spec.Depth < len(r.Levels) {
		// Show the first levels completely rather than the first directories deeply.
		if r, err = s.Sandbox.Walk(ctx, spec); err != nil {
			return schemas.Observation{}, err
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s/\n", strings.TrimSuffix(path.Join(s.Workdir, p.Rel), "/"))
	for _, e := range r.Entries {
		b.WriteString(strings.Repeat("  ", 1+strings.Count(e.Path, "/")) + listdirLabel(e) + "\n")
	}
	if len(r.Entries) == 0 && r.Unreadable == 0 {
		b.WriteString("  (empty)\n")
	}
	b.WriteString(listdirRest(r, whole, spec.Depth))
	return schemas.Observation{Text: b.String(), Targets: []string{p.Rel}}, nil
}

// fittingLevels returns how many levels together have at most limit entries, at least 1.
func fittingLevels(levels []int, limit int) int {
	sum := 0
	for i, n := range levels {
		if sum += n; sum > limit && i > 0 {
			return i
		}
	}
	return len(levels)
}

// listdirRest describes the entries of whole that a listing r of depth levels omits.
func listdirRest(r, whole env.WalkResult, depth int) string {
	out := ""
	if missing := whole.Total() - len(r.Entries); missing > 0 {
		out = fmt.Sprintf("[and %d more; %s]\n", missing, listdirRemedy)
		if len(r.Entries) == r.Total() {
			out = fmt.Sprintf("[and %d more below level %d; list a subdirectory to see them]\n", missing, depth)
		}
	}
	if whole.Incomplete {
		out += fmt.Sprintf("[there are too many entries to count; %s]\n", listdirRemedy)
	}
	if whole.Unreadable > 0 {
		out += fmt.Sprintf("[%d of the directories could not be read]\n", whole.Unreadable)
	}
	return out
}

// listdirLabel returns the name of an entry with a mark for its type.
func listdirLabel(e env.WalkEntry) string {
	name := quoteName(path.Base(e.Path))
	switch {
	case e.Kind == 'd':
		return name + "/"
	case e.Kind == 'l':
		return name + " -> " + quoteName(e.Target)
	case e.Kind == '?':
		return name + " (special file)"
	case e.Mode&0o111 != 0:
		return name + "*"
	}
	return name
}

// quoteName quotes a name that contains control characters, is not UTF-8, or has spaces at
// its ends. locate accepts the result.
func quoteName(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.TrimSpace(name) != name {
		return strconv.Quote(name)
	}
	return name
}

// otherNames returns the names that arg may mean besides its trimmed text: arg with the
// spaces around it, and the names that quoteName quotes as arg or as the last part of arg.
func otherNames(arg string) []string {
	var out []string
	if trimmed := strings.TrimSpace(arg); trimmed != arg {
		out = append(out, arg)
		arg = trimmed
	}
	if name, err := strconv.Unquote(arg); err == nil {
		out = append(out, name)
	}
	if i := strings.Index(arg, `/"`); i >= 0 {
		if name, err := strconv.Unquote(arg[i+1:]); err == nil {
			out = append(out, arg[:i+1]+name)
		}
	}
	return out
}
