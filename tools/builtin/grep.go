package builtin

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

type grepArgs struct {
	Pattern    string  `json:"pattern" jsonschema:"What to search for: a Perl-style regular expression such as def \\w+_total or total|sum, matched line by line."`
	Path       *string `json:"path,omitempty" jsonschema:"File or directory to search, relative to the workspace. Default: the whole workspace."`
	Include    *string `json:"include,omitempty" jsonschema:"Search only files whose name matches this glob, for example *.py."`
	MaxResults *int    `json:"max_results,omitempty" jsonschema:"How many matching lines to show at most. Default: 100."`
	IgnoreCase *bool   `json:"ignore_case,omitempty" jsonschema:"Ignore the difference between upper and lower case. Default: false."`
	Fixed      *bool   `json:"fixed,omitempty" jsonschema:"Take the pattern literally, not as a regular expression. Default: false."`
}

type grepSettings struct{ tools.Settings }

func init() {
	dir, include := "src", "*.py"
	register("search file contents", func(c grepSettings) (tools.Def[grepArgs], error) {
		return tools.Def[grepArgs]{
			Name: "grep", Category: "grep",
			Description: "Search the text files of the workspace for a pattern. The matching lines are shown with " +
				"their line numbers, grouped by file. Binary files and the directories .git, __pycache__ and " +
				"node_modules are left out.",
			Example: grepArgs{Pattern: `def \w+_total`, Path: &dir, Include: &include},
			More:    "narrow the pattern, or give path, include or a smaller max_results",
			Call:    grep,
		}, nil
	})
}

const (
	grepMaxResults = 1000
	grepMaxLine    = 300 // bytes shown of a matching line
	grepMaxOutput  = 8 << 20
)

func grep(ctx context.Context, s *env.Session, a grepArgs) (schemas.Observation, error) {
	limit := 100
	if a.MaxResults != nil {
		if *a.MaxResults < 1 {
			return schemas.Observation{}, tools.Mistake("max_results=%d finds nothing. Give a number from 1 to %d.", *a.MaxResults, grepMaxResults)
		}
		limit = min(*a.MaxResults, grepMaxResults)
	}
	switch {
	case a.Pattern == "":
		return schemas.Observation{}, tools.Mistake("The pattern is empty. Give the text or regular expression to search for.")
	case strings.Contains(a.Pattern, "\n"):
		return schemas.Observation{}, tools.Mistake("The pattern has more than one line, but lines are matched one by one. Search for one line of it.")
	}
	scope, err := grepScope(ctx, s, a.Path)
	if err != nil {
		return schemas.Observation{}, err
	}
	args, err := grepCommand(a, scope)
	if err != nil {
		return schemas.Observation{}, err
	}
	res, err := s.Sandbox.Run(ctx, env.Command{
		Args: args, Dir: s.Workdir, Timeout: s.CommandTimeout, MaxOutput: grepMaxOutput,
		Env: []string{"LC_ALL=C"}, // every byte is a character: no file is skipped for its encoding
	})
	if err != nil {
		return schemas.Observation{}, err
	}
	found := parseGrep(res)
	switch {
	case res.TimedOut:
		return schemas.Observation{TimedOut: true, IsError: true, ErrorClass: schemas.ErrTimeout, Text: fmt.Sprintf(
			"The search took longer than %s and was stopped. Narrow it with path or include.", s.CommandTimeout.Round(time.Second))}, nil
	case res.ExitCode > 1 && found.count == 0:
		return schemas.Observation{}, tools.Mistake("grep did not accept the search: %s. To search for text with special characters "+
			"as it stands, set fixed to true.", grepComplaint(res.Output))
	case found.count == 0:
		return schemas.Observation{Text: fmt.Sprintf("No line matches %q in %s.", a.Pattern, grepWhere(scope, a.Include))}, nil
	}
	return found.observation(limit, res.Total > int64(len(res.Output))), nil
}

// grepScope is the path to search, relative to the workspace, beginning with
// "./" so that no name is taken for an option.
func grepScope(ctx context.Context, s *env.Session, arg *string) (string, error) {
	if arg == nil || strings.TrimSpace(*arg) == "" {
		return ".", nil
	}
	p, err := locate(ctx, s, *arg)
	switch {
	case err != nil:
		return "", err
	case p.Exists && p.Rel == ".":
		return ".", nil
	case p.Exists:
		return "./" + p.Rel, nil
	case strings.ContainsAny(p.Rel, "*?["):
		dir, name := path.Split(p.Rel)
		for strings.ContainsAny(dir, "*?[") {
			dir, _ = path.Split(strings.TrimSuffix(dir, "/"))
		}
		dir = path.Clean(dir)
		return "", tools.Mistake("path names one file or directory and takes no wildcards. Use path %q with include %q.", dir, name)
	}
	return "", tools.Mistake("%s does not exist.%s", p.Rel, suggestions(ctx, s, p.Rel))
}

func grepCommand(a grepArgs, scope string) ([]string, error) {
	// -r follows no links, -I skips binary files, -Z ends names with NUL.
	args := []string{"grep", "-rnHIZ", "--color=never"}
	for _, dir := range []string{".git", "__pycache__", "node_modules"} {
		args = append(args, "--exclude-dir="+dir)
	}
	if a.IgnoreCase != nil && *a.IgnoreCase {
		args = append(args, "-i")
	}
	if a.Fixed != nil && *a.Fixed {
		args = append(args, "-F")
	} else {
		args = append(args, "-P")
	}
	if a.Include != nil && *a.Include != "" {
		globs, err := includeGlobs(*a.Include)
		if err != nil {
			return nil, err
		}
		for _, g := range globs {
			args = append(args, "--include="+g)
		}
	}
	return append(args, "-e", a.Pattern, "--", scope), nil
}

var braces = regexp.MustCompile(`^([^{}]*)\{([^{}]*)\}([^{}]*)$`)

// includeGlobs expands one {a,b} and drops a leading **/, which changes nothing
// because include matches names, not paths.
func includeGlobs(glob string) ([]string, error) {
	name := strings.TrimPrefix(strings.TrimPrefix(glob, "./"), "**/")
	if strings.Contains(name, "/") {
		dir, base := path.Split(name)
		return nil, tools.Mistake("include matches file names, not paths. Use path %q with include %q.", strings.Trim(dir, "*/"), base)
	}
	m := braces.FindStringSubmatch(name)
	if m == nil {
		return []string{name}, nil
	}
	var out []string
	for alternative := range strings.SplitSeq(m[2], ",") {
		out = append(out, m[1]+alternative+m[3])
	}
	return out, nil
}

func grepWhere(scope string, include *string) string {
	where := "the workspace"
	if scope != "." {
		where = strings.TrimPrefix(scope, "./")
	}
	if include != nil && *include != "" {
		where += " (files " + *include + ")"
	}
	return where
}

// grepComplaint is grep's own error message without its name.
func grepComplaint(output []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(output)), "\n")
	return strings.TrimSuffix(strings.TrimPrefix(line, "grep: "), ".")
}

// grepFound is a search's result: matching lines by file.
type grepFound struct {
	files map[string][]grepLine
	count int
}

type grepLine struct {
	number int
	text   string
}

// parseGrep reads "name NUL number : text" lines; complaints about unreadable
// files have no NUL and are left out.
func parseGrep(res env.Result) grepFound {
	out := res.Output
	if res.Total > int64(len(out)) {
		out = out[:bytes.LastIndexByte(out[:min(res.Head, len(out))], '\n')+1]
	}
	found := grepFound{files: map[string][]grepLine{}}
	for line := range bytes.Lines(out) {
		name, rest, ok := bytes.Cut(line, []byte{0})
		number, text, ok2 := bytes.Cut(rest, []byte{':'})
		n, err := strconv.Atoi(string(number))
		if !ok || !ok2 || err != nil {
			continue
		}
		file := strings.TrimPrefix(string(name), "./")
		found.files[file] = append(found.files[file], grepLine{n, strings.TrimRight(string(text), "\r\n")})
		found.count++
	}
	return found
}

// observation shows the first limit lines, files in the order of their names.
func (f grepFound) observation(limit int, cut bool) schemas.Observation {
	var b strings.Builder
	var targets []string
	left := limit
	for _, file := range slices.Sorted(maps.Keys(f.files)) {
		if left == 0 {
			break
		}
		fmt.Fprintf(&b, "\n%s\n", file)
		targets = append(targets, file)
		for _, l := range f.files[file][:min(left, len(f.files[file]))] {
			fmt.Fprintf(&b, "%5d: %s\n", l.number, shorten(l.text, grepMaxLine))
			left--
		}
	}
	head := fmt.Sprintf("%s in %s:", plural(f.count, "match"), plural(len(f.files), "file"))
	switch {
	case cut:
		head = fmt.Sprintf("The first %s; there are more than %d:", plural(limit-left, "match"), f.count)
	case f.count > limit:
		head = fmt.Sprintf("The first %d of %d matches in %s:", limit, f.count, plural(len(f.files), "file"))
	}
	return schemas.Observation{Text: head + "\n" + b.String(), Targets: targets}
}
