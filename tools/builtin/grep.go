package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

type grepArgs struct {
	Pattern    string  `json:"pattern" jsonschema:"Regular expression to search for, such as def \\w+_total or total|sum, matched line by line (RE2 syntax: no lookaround, no backreferences)."`
	Path       *string `json:"path,omitempty" jsonschema:"File, directory or glob (such as src/**/test_*.py) to search, relative to the workspace. Default: the whole workspace."`
	Include    *string `json:"include,omitempty" jsonschema:"Search only files that match this glob, for example *.py or *.{py,toml}. A glob with a slash is matched against the path, one without against the name."`
	Exclude    *string `json:"exclude,omitempty" jsonschema:"Skip files and directories that match this glob, for example tests or *_pb2.py."`
	MaxResults *int    `json:"max_results,omitempty" jsonschema:"Maximum number of matching lines to show, 1 to 1000. Default: 100."`
	Context    *int    `json:"context,omitempty" jsonschema:"Number of lines to show before and after each match, 0 to 10. Default: 0."`
	IgnoreCase *bool   `json:"ignore_case,omitempty" jsonschema:"Ignore case when matching. Default: false."`
	Fixed      *bool   `json:"fixed,omitempty" jsonschema:"Treat the pattern as plain text, not as a regular expression. Default: false."`
}

type grepSettings struct {
	tools.Settings
	// Globs of directory names to skip; unset = .git, __pycache__, .pytest_cache, node_modules.
	Ignore []string `json:"ignore,omitempty"`
}

// defaultIgnore lists directories that contain no files of the project itself.
var defaultIgnore = []string{".git", "__pycache__", ".pytest_cache", "node_modules"}

func init() {
	dir, include := "src", "*.py"
	register("search file contents", func(c grepSettings) (tools.Def[grepArgs], error) {
		var err error
		c.Ignore, err = ignoreGlobs(c.Ignore)
		return tools.Def[grepArgs]{
			Name: "grep", Category: "grep",
			Description: "Search the text files in the workspace for a pattern. You get the matching lines with their line " +
				"numbers, grouped by file; context lines have a - after the number. Hidden files are searched, symbolic " +
				"links are not followed, and binary files are skipped" +
				formatNames(c.Ignore, ", as are directories named %s") + ".",
			Example:        grepArgs{Pattern: `def \w+_total`, Path: &dir, Include: &include},
			TruncationHint: "narrow the pattern, or give path, include or a smaller max_results",
			Call:           c.call,
		}, err
	})
}

// ignoreGlobs returns the globs of a setting, or the defaults if the setting is unset. It returns
// an error if a glob is invalid.
func ignoreGlobs(globs []string) ([]string, error) {
	if globs == nil {
		return defaultIgnore, nil
	}
	for _, g := range globs {
		if g == "" || strings.Contains(g, "/") || !doublestar.ValidatePattern(g) {
			return nil, fmt.Errorf("ignore: %q is not a glob for a directory name: write, for example, node_modules or *.egg-info", g)
		}
	}
	return globs, nil
}

// formatNames formats a list of names, such as "a, b and c". It returns "" for an empty list.
func formatNames(names []string, format string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(format, names[0])
	}
	return fmt.Sprintf(format, strings.Join(names[:len(names)-1], ", ")+" and "+names[len(names)-1])
}

const (
	grepMaxResults = 1000
	grepMaxContext = 10
	grepMaxLine    = 300      // bytes shown of one line
	grepMaxBytes   = 48 << 10 // bytes shown of all lines; less than tools.MaxText
)

func (c grepSettings) call(ctx context.Context, s *env.Session, a grepArgs) (schemas.Observation, error) {
	q, err := grepSpec(a)
	if err != nil {
		return schemas.Observation{}, err
	}
	scope, err := grepScope(ctx, s, a, &q)
	if err != nil {
		return schemas.Observation{}, err
	}
	q.Ignore, q.Timeout = c.Ignore, s.CommandTimeout
	r, err := s.Sandbox.Search(ctx, q)
	switch {
	case errors.Is(err, env.ErrRefused):
		return schemas.Observation{}, tools.NewUserError("grep rejected the search: %v.", err)
	case err != nil:
		return schemas.Observation{}, err
	case r.Matches == 0 && r.Incomplete:
		return schemas.Observation{TimedOut: true, IsError: true, ErrorClass: schemas.ErrTimeout, Text: fmt.Sprintf(
			"The search stopped after %s and %s, without a match so far. Narrow it with path or include.",
			s.CommandTimeout.Round(time.Second), plural(int(r.Searched), "file"))}, nil
	case r.Matches == 0:
		return schemas.Observation{Text: nothingFound(a, scope, r)}, nil
	}
	return grepObservation(scope, r, q.Context > 0), nil
}

// grepSpec returns the search without its path.
func grepSpec(a grepArgs) (env.SearchSpec, error) {
	q := env.SearchSpec{Pattern: a.Pattern, MaxMatches: 100, MaxLine: grepMaxLine, MaxBytes: grepMaxBytes}
	q.Literal, q.IgnoreCase = a.Fixed != nil && *a.Fixed, a.IgnoreCase != nil && *a.IgnoreCase
	if n := a.MaxResults; n != nil {
		if *n < 1 {
			return q, tools.NewUserError("max_results=%d is too small. Give a number from 1 to %d.", *n, grepMaxResults)
		}
		q.MaxMatches = min(*n, grepMaxResults)
	}
	if n := a.Context; n != nil {
		if *n < 0 {
			return q, tools.NewUserError("context=%d is negative. Give a number from 0 to %d.", *n, grepMaxContext)
		}
		q.Context = min(*n, grepMaxContext)
	}
	switch {
	case a.Pattern == "":
		return q, tools.NewUserError("The pattern is empty. Give the text or regular expression to search for.")
	case strings.Contains(a.Pattern, "\n"):
		return q, tools.NewUserError("The pattern contains a newline, but grep matches one line at a time. Search for a single line of it.")
	}
	for _, g := range []struct {
		glob *string
		list *[]string
	}{{a.Include, &q.Include}, {a.Exclude, &q.Exclude}} {
		if g.glob == nil || strings.TrimSpace(*g.glob) == "" {
			continue
		}
		*g.list = []string{strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(*g.glob), "./"), "/")}
	}
	if q.Literal {
		return q, nil
	}
	if _, err := syntax.Parse(a.Pattern, syntax.Perl); err != nil {
		return q, patternMistake(err)
	}
	return q, nil
}

// grepPlace is the part of the workspace that a search covers.
type grepPlace struct {
	rel  string // a path relative to the workspace
	glob string // glob of the files below rel; "" means all files
}

func (p grepPlace) String() string {
	switch {
	case p.glob != "" && p.rel == ".":
		return p.glob
	case p.glob != "":
		return p.rel + "/" + p.glob
	case p.rel == ".":
		return "the workspace"
	}
	return quoteName(p.rel)
}

// grepScope sets the path and the globs of q. If the path in the arguments does not exist and
// contains wildcards, it is a glob below its part without wildcards.
func grepScope(ctx context.Context, s *env.Session, a grepArgs, q *env.SearchSpec) (grepPlace, error) {
	p, err := locate(ctx, s, cmp.Or(strings.TrimSpace(schemas.Value(a.Path)), "."))
	place := grepPlace{rel: p.Rel}
	switch {
	case err != nil:
		return place, err
	case !p.Exists && strings.ContainsAny(p.Rel, "*?[{"):
		dir, glob := doublestar.SplitPattern(p.Rel)
		if p, err = locate(ctx, s, dir); err != nil {
			return place, err
		}
		place.rel, place.glob = p.Rel, glob
		q.Within = []string{glob}
	}
	switch {
	case !p.Exists:
		return place, tools.NewUserError("%s does not exist.%s", p, suggestions(ctx, s, p.Rel))
	case place.glob != "" && !p.IsDir:
		return place, tools.NewUserError("%s is a file, so %s matches nothing.", p, place)
	}
	q.Path = p.Abs
	for _, list := range [][]string{q.Include, q.Exclude} {
		for i, g := range list { // make globs that begin with the searched path relative to it
			g = strings.TrimPrefix(g, s.Workdir)
			if below, ok := strings.CutPrefix(strings.TrimPrefix(g, "/"), p.Rel+"/"); ok {
				g = "/" + below
			}
			list[i] = g
		}
	}
	return place, nil
}

// nothingFound says which part of the workspace grep searched, and what may be wrong with the
// search.
func nothingFound(a grepArgs, place grepPlace, r env.SearchResult) string {
	where := place.String()
	for _, g := range []struct {
		glob *string
		word string
	}{{a.Include, "only"}, {a.Exclude, "without"}} {
		if g.glob != nil && strings.TrimSpace(*g.glob) != "" {
			where += fmt.Sprintf(" (%s %s)", g.word, *g.glob)
		}
	}
	text := fmt.Sprintf("No line matches %q in %s.", a.Pattern, where)
	literal := a.Fixed != nil && *a.Fixed
	switch {
	case r.Searched == 0 && r.Binary > 0:
		text += " grep found only binary files there, and does not search them."
	case r.Searched == 0 && r.Unreadable > 0:
		text += " None of the files there could be read."
	case r.Searched == 0:
		text += " There are no files to search: check path, include and exclude with listdir."
	case !literal && slices.ContainsFunc([]string{`\|`, `\(`, `\)`, `\{`, `\+`}, func(s string) bool { return strings.Contains(a.Pattern, s) }):
		text += ` In this syntax, | ( ) { } + are operators without a backslash and literal characters with one.`
	case !literal && strings.Contains(a.Pattern, `\n`):
		text += ` grep matches one line at a time, so \n matches nothing.`
	}
	return text
}

// grepObservation shows the lines of a result, grouped by file.
func grepObservation(scope grepPlace, r env.SearchResult, context bool) schemas.Observation {
	var b strings.Builder
	var targets []string
	file, last, shown := "", int64(0), 0
	for i, l := range r.Lines {
		if name := joinPath(scope.rel, l.File); i == 0 || name != file {
			file, last = name, 0
			fmt.Fprintf(&b, "\n%s\n", quoteName(file))
			targets = append(targets, file)
		}
		mark := ':'
		if !l.Match {
			mark = '-'
		} else {
			shown++
		}
		if context && last > 0 && l.Number > last+1 {
			b.WriteString("    --\n")
		}
		last = l.Number
		fmt.Fprintf(&b, "%5d%c %s\n", l.Number, mark, lineText(l))
	}
	head := fmt.Sprintf("%s in %s:", plural(int(r.Matches), "match"), plural(int(r.Files), "file"))
	switch {
	case r.Incomplete:
		head = fmt.Sprintf("The first %d of at least %s; the search stopped before it had read every file. Narrow it with path or include:",
			shown, plural(int(r.Matches), "match"))
	case r.Matches > int64(shown):
		head = fmt.Sprintf("The first %d of %s in %s:", shown, plural(int(r.Matches), "match"), plural(int(r.Files), "file"))
	}
	if r.Unreadable > 0 {
		fmt.Fprintf(&b, "\n[%s could not be read]\n", plural(int(r.Unreadable), "file"))
	}
	return schemas.Observation{Text: head + "\n" + b.String(), Targets: targets}
}
