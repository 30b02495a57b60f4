package builtin

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/configs/nearest"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/tools"
)

// place is a path in the workspace.
type place struct {
	Rel    string // relative to the workspace; "." is the workspace
	Abs    string // with symbolic links resolved if it exists
	Exists bool
	env.FileInfo
}

// String returns the path as it is shown to the model.
func (p place) String() string { return quoteName(p.Rel) }

// locate resolves a path that a model gave. If the path does not exist, locate tries the other
// names that the model may mean; see otherNames.
func locate(ctx context.Context, s *env.Session, arg string) (place, error) {
	p, err := resolve(ctx, s, strings.TrimSpace(arg))
	if err != nil || p.Exists {
		return p, err
	}
	for _, other := range otherNames(arg) {
		if q, err := resolve(ctx, s, other); err == nil && q.Exists {
			return q, nil
		}
	}
	return p, nil
}

// resolve returns the place of a path. It refuses paths that lead out of the workspace, by ..
// or through a symbolic link.
func resolve(ctx context.Context, s *env.Session, arg string) (place, error) {
	rel, err := relativePath(s.Workdir, arg)
	if err != nil {
		return place{}, err
	}
	p := place{Rel: rel, Abs: path.Join(s.Workdir, rel)}
	p.FileInfo, err = s.Sandbox.Stat(ctx, p.Abs)
	switch {
	case errors.Is(err, env.ErrNotExist):
		return p, checkContained(ctx, s, path.Dir(p.Abs), arg)
	case err != nil:
		return p, err
	}
	p.Exists = true
	if p.Real == p.Abs {
		return p, nil
	}
	if p.Symlink != "" && p.Real == "" {
		return p, tools.NewUserError("%s is a symbolic link to %s, which does not exist.", rel, p.Symlink)
	}
	if err := checkContained(ctx, s, p.Abs, arg); err != nil {
		return p, err
	}
	p.Abs = p.Real
	if real, below := strings.CutPrefix(p.Real, s.Workdir+"/"); below {
		p.Rel = real
	}
	p.FileInfo, err = s.Sandbox.Stat(ctx, p.Abs)
	return p, err
}

// relativePath returns arg relative to the workspace. It does not resolve symbolic links.
func relativePath(workdir, arg string) (string, error) {
	if strings.TrimSpace(arg) == "" {
		return "", tools.NewUserError("The path is empty. Give a path relative to %s, for example \"src/main.py\".", workdir)
	}
	if slices.ContainsFunc(strings.Split(arg, "/"), func(name string) bool { return len(name) > 255 }) || len(arg) > 4000 {
		return "", tools.NewUserError("The path is too long (%d bytes): %s", len(arg), shorten(arg, 80))
	}
	abs := path.Clean(arg)
	if !path.IsAbs(abs) {
		abs = path.Join(workdir, abs)
	}
	if abs == workdir {
		return ".", nil
	}
	rel, below := strings.CutPrefix(abs, strings.TrimSuffix(workdir, "/")+"/")
	if !below {
		return "", outsideError(workdir, arg)
	}
	return rel, nil
}

// outsideError returns the error for a path that is not in the workspace.
func outsideError(workdir, arg string) error {
	return tools.NewUserError("%s is outside the workspace %s, and this tool works only inside it. "+
		"Give a path below %s; to read other files, use bash, for example: cat %s", arg, workdir, workdir, arg)
}

// checkContained checks that abs, or the nearest directory above it that exists, is in the
// workspace after symbolic links are resolved.
func checkContained(ctx context.Context, s *env.Session, abs, arg string) error {
	root, err := s.Sandbox.Stat(ctx, s.Workdir)
	if err != nil {
		return err
	}
	for {
		info, err := s.Sandbox.Stat(ctx, abs)
		switch {
		case err == nil && info.Real == "":
			return tools.NewUserError("%s is a symbolic link to %s, which does not exist.", abs, info.Symlink)
		case err == nil && (info.Real == root.Real || strings.HasPrefix(info.Real, root.Real+"/")):
			return nil
		case err == nil:
			return outsideError(s.Workdir, arg)
		case !errors.Is(err, env.ErrNotExist) || abs == "/":
			return err
		}
		abs = path.Dir(abs)
	}
}

// locateFile is like locate, but refuses missing files and directories.
func locateFile(ctx context.Context, s *env.Session, arg string) (place, error) {
	p, err := locate(ctx, s, arg)
	switch {
	case err != nil:
		return p, err
	case !p.Exists:
		return p, tools.NewUserError("%s does not exist.%s", p, suggestions(ctx, s, p.Rel))
	case p.IsDir:
		return p, tools.NewUserError("%s is a directory. Use listdir to see its contents: {\"path\": %q}", p, p.Rel)
	}
	return p, nil
}

// suggestions returns a sentence, with a leading space, that names files with similar names
// or, if there are none, the tools that find files.
func suggestions(ctx context.Context, s *env.Session, rel string) string {
	const none = " Use listdir or grep to find the right path."
	r, err := s.Sandbox.Walk(ctx, env.WalkSpec{
		Dir: s.Workdir, Depth: 12, Ignore: defaultIgnore, MaxEntries: 20_000, Timeout: 5 * time.Second,
	})
	if err != nil {
		return none
	}
	type candidate struct {
		path     string
		distance int
	}
	var found []candidate
	want := path.Base(rel)
	for _, e := range r.Entries {
		name, base := e.Path, path.Base(e.Path)
		if len(name) > 400 {
			continue
		}
		if tolerated := len(want) / 3; max(len(base)-len(want), len(want)-len(base)) <= tolerated {
			if d := nearest.Distance(base, want); d <= tolerated {
				found = append(found, candidate{name, d})
			}
		}
	}
	if len(found) == 0 {
		return none
	}
	slices.SortFunc(found, func(a, b candidate) int {
		if a.distance != b.distance {
			return a.distance - b.distance
		}
		return strings.Compare(a.path, b.path)
	})
	var names []string
	for _, c := range found[:min(3, len(found))] {
		names = append(names, quoteName(c.path))
	}
	return fmt.Sprintf(" Did you mean %s?", strings.Join(names, " or "))
}

// joinPath joins rel and a path below it, which may be empty.
func joinPath(rel, below string) string {
	if below == "" {
		return rel
	}
	return path.Join(rel, below)
}

// escapeControls replaces control characters other than tab by escapes such as \x1b.
func escapeControls(text string) string {
	if !strings.ContainsFunc(text, isControl) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isControl(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isControl reports whether r is a control character other than tab.
func isControl(r rune) bool { return r != '\t' && unicode.IsControl(r) }

// lineText returns a line of a search as it is shown: control characters are escaped, and
// bytes that the search cut off are counted.
func lineText(l env.SearchLine) string {
	text := l.Text
	after := l.Size - l.Cut - int64(len(text))
	if after == 0 {
		text = strings.TrimSuffix(text, "\r")
	}
	text = escapeControls(text)
	if l.Cut > 0 {
		text = fmt.Sprintf("[%s before] ...%s", plural(int(l.Cut), "byte"), text)
	}
	if after > 0 {
		text += fmt.Sprintf("... [%s more]", plural(int(after), "byte"))
	}
	return text
}

// lineRange returns a range in the format of Observation.Targets.
func lineRange(rel string, start, end int) string {
	if start == end {
		return fmt.Sprintf("%s:%d", rel, start)
	}
	return fmt.Sprintf("%s:%d-%d", rel, start, end)
}

// plural returns a number with a noun, such as "1 line" or "2 lines".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "ch") {
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// shorten cuts a line at limit bytes and appends how much is missing.
func shorten(line string, limit int) string {
	if len(line) <= limit {
		return line
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(line[cut]) {
		cut--
	}
	return fmt.Sprintf("%s... [%s more]", line[:cut], plural(len(line)-cut, "byte"))
}
