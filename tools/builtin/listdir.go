package builtin

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

type listdirArgs struct {
	Path  *string `json:"path,omitempty" jsonschema:"Directory to list, relative to the workspace. Default: the workspace itself."`
	Depth *int    `json:"depth,omitempty" jsonschema:"How many levels to show, 1 to 20. Default: 1, the directory's own entries."`
}

type listdirSettings struct{ tools.Settings }

func init() {
	dir, depth := "src", 2
	register("list a directory tree", func(c listdirSettings) (tools.Def[listdirArgs], error) {
		return tools.Def[listdirArgs]{
			Name: "listdir", Category: "listdir",
			Description: "List the files and directories of the workspace as an indented tree, sorted by name. " +
				"Directories end in /, executable files in *, symbolic links show their target and are not followed. " +
				"The contents of .git and __pycache__ are left out.",
			Example: listdirArgs{Path: &dir, Depth: &depth},
			More:    "list a subdirectory or a smaller depth",
			Call:    listdir,
		}, nil
	})
}

const (
	listdirMaxDepth   = 20
	listdirMaxEntries = 1000
)

func listdir(ctx context.Context, s *env.Session, a listdirArgs) (schemas.Observation, error) {
	arg, depth := ".", 1
	if a.Path != nil && strings.TrimSpace(*a.Path) != "" {
		arg = *a.Path
	}
	if a.Depth != nil {
		depth = min(*a.Depth, listdirMaxDepth)
	}
	if depth < 1 {
		return schemas.Observation{}, tools.Mistake("depth=%d shows nothing. Give a depth from 1 to %d.", depth, listdirMaxDepth)
	}
	p, err := locate(ctx, s, arg)
	switch {
	case err != nil:
		return schemas.Observation{}, err
	case !p.Exists:
		return schemas.Observation{}, tools.Mistake("%s does not exist.%s", p.Rel, suggestions(ctx, s, p.Rel))
	case !p.IsDir:
		return schemas.Observation{}, tools.Mistake("%s is a file. Use view to read it: {\"path\": %q}", p.Rel, p.Rel)
	}
	// type, permission bits, path below the root, link target: four NUL-ended fields
	res, err := s.Sandbox.Run(ctx, env.Command{
		Args: []string{"find", p.Abs, "-mindepth", "1", "-maxdepth", strconv.Itoa(depth),
			"-printf", `%y\0%m\0%P\0%l\0`, "(", "-name", ".git", "-o", "-name", "__pycache__", ")", "-prune"},
		Dir: s.Workdir, Timeout: s.CommandTimeout, MaxOutput: 8 << 20,
	})
	if err != nil {
		return schemas.Observation{}, err
	}
	entries := parseFind(res)
	slices.SortFunc(entries, func(a, b dirEntry) int { return slices.Compare(a.path, b.path) })

	var b strings.Builder
	fmt.Fprintf(&b, "%s/\n", path.Join(s.Workdir, p.Rel))
	for _, e := range entries[:min(len(entries), listdirMaxEntries)] {
		b.WriteString(strings.Repeat("  ", len(e.path)) + e.label() + "\n")
	}
	switch more := len(entries) - listdirMaxEntries; {
	case len(entries) == 0:
		b.WriteString("  (empty)\n")
	case res.Total > int64(len(res.Output)):
		b.WriteString("[and more; list a subdirectory or a smaller depth]\n")
	case res.TimedOut:
		b.WriteString("[listing took too long and is incomplete; list a subdirectory or a smaller depth]\n")
	case more > 0:
		fmt.Fprintf(&b, "[and %d more; list a subdirectory or a smaller depth]\n", more)
	}
	return schemas.Observation{Text: b.String(), Targets: []string{p.Rel}}, nil
}

type dirEntry struct {
	kind   byte // as find's %y: d, f, l, ...
	mode   uint64
	path   []string // below the listed directory
	target string   // of a symbolic link
}

// label is the entry's own name; one that would break the line is quoted.
func (e dirEntry) label() string {
	name := quoteName(e.path[len(e.path)-1])
	switch {
	case e.kind == 'd':
		return name + "/"
	case e.kind == 'l':
		return name + " -> " + quoteName(e.target)
	case e.kind == 'f' && e.mode&0o111 != 0:
		return name + "*"
	}
	return name
}

func quoteName(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }) {
		return strconv.Quote(name)
	}
	return name
}

// parseFind reads the fields; complaints of find about unreadable directories
// cannot be told apart from names, so a field that does not parse is skipped.
func parseFind(res env.Result) []dirEntry {
	out := res.Output
	if res.Total > int64(len(out)) {
		out = out[:min(res.Head, len(out))]
	}
	var entries []dirEntry
	for f := range slices.Chunk(strings.Split(string(out), "\x00"), 4) {
		if len(f) < 4 {
			break
		}
		kind := f[0]
		if n := strings.LastIndexByte(kind, '\n'); n >= 0 { // a complaint printed before it
			kind = kind[n+1:]
		}
		mode, err := strconv.ParseUint(f[1], 8, 32)
		if len(kind) != 1 || err != nil || f[2] == "" {
			continue
		}
		entries = append(entries, dirEntry{kind[0], mode, strings.Split(f[2], "/"), f[3]})
	}
	return entries
}
