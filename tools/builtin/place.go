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

// place is a path of the workspace as a model named it and as it really is.
type place struct {
	Rel    string // below the workspace, slash-separated; "." is the workspace
	Abs    string // with every symlink resolved where it exists
	Exists bool
	env.FileInfo
}

// String is the path as it is shown.
func (p place) String() string { return quoteName(p.Rel) }

// locate finds what a model means by a path: what it spells, else what it shows.
func locate(ctx context.Context, s *env.Session, arg string) (place, error) {
	p, err := find(ctx, s, strings.TrimSpace(arg))
	if err != nil || p.Exists {
		return p, err
	}
	for _, other := range unquoted(arg) {
		if q, err := find(ctx, s, other); err == nil && q.Exists {
			return q, nil
		}
	}
	return p, nil
}

// find is locate for one spelling. Paths that lead out of the workspace, by .. or
// through a symlink, are refused.
func find(ctx context.Context, s *env.Session, arg string) (place, error) {
	rel, err := within(s.Workdir, arg)
	if err != nil {
		return place{}, err
	}
	p := place{Rel: rel, Abs: path.Join(s.Workdir, rel)}
	p.FileInfo, err = s.Sandbox.Stat(ctx, p.Abs)
	switch {
	case errors.Is(err, env.ErrNotExist):
		return p, contained(ctx, s, path.Dir(p.Abs), arg)
	case err != nil:
		return p, err
	}
	p.Exists = true
	if p.Real == p.Abs {
		return p, nil
	}
	if p.Symlink != "" && p.Real == "" {
		return p, tools.Mistake("%s is a symbolic link to %s, which does not exist.", rel, p.Symlink)
	}
	if err := contained(ctx, s, p.Abs, arg); err != nil {
		return p, err
	}
	p.Abs = p.Real
	if real, below := strings.CutPrefix(p.Real, s.Workdir+"/"); below {
		p.Rel = real
	}
	p.FileInfo, err = s.Sandbox.Stat(ctx, p.Abs)
	return p, err
}

// within is the lexical half: arg relative to the workspace.
func within(workdir, arg string) (string, error) {
	if strings.TrimSpace(arg) == "" {
		return "", tools.Mistake("The path is empty. Give a path relative to %s, for example \"src/main.py\".", workdir)
	}
	if slices.ContainsFunc(strings.Split(arg, "/"), func(name string) bool { return len(name) > 255 }) || len(arg) > 4000 {
		return "", tools.Mistake("The path is too long (%d bytes): %s", len(arg), shorten(arg, 80))
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
		return "", outside(workdir, arg)
	}
	return rel, nil
}

func outside(workdir, arg string) error {
	return tools.Mistake("%s is outside the workspace %s, and this tool works only inside it. "+
		"Give a path below %s; to read other files, use bash, for example: cat %s", arg, workdir, workdir, arg)
}

// contained checks that abs, or the nearest directory above it that exists,
// really lies in the workspace.
func contained(ctx context.Context, s *env.Session, abs, arg string) error {
	root, err := s.Sandbox.Stat(ctx, s.Workdir)
	if err != nil {
		return err
	}
	for {
		info, err := s.Sandbox.Stat(ctx, abs)
		switch {
		case err == nil && info.Real == "":
			return tools.Mistake("%s is a symbolic link to %s, which does not exist.", abs, info.Symlink)
		case err == nil && (info.Real == root.Real || strings.HasPrefix(info.Real, root.Real+"/")):
			return nil
		case err == nil:
			return outside(s.Workdir, arg)
		case !errors.Is(err, env.ErrNotExist) || abs == "/":
			return err
		}
		abs = path.Dir(abs)
	}
}

// file is locate for an existing regular file.
func file(ctx context.Context, s *env.Session, arg string) (place, error) {
	p, err := locate(ctx, s, arg)
	switch {
	case err != nil:
		return p, err
	case !p.Exists:
		return p, tools.Mistake("%s does not exist.%s", p, suggestions(ctx, s, p.Rel))
	case p.IsDir:
		return p, tools.Mistake("%s is a directory. Use listdir to see its contents: {\"path\": %q}", p, p.Rel)
	}
	return p, nil
}

// suggestions names files of the workspace that the model may have meant, as a
// sentence with a leading space, or tells how to look.
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

// joined is a path below rel, itself below the workspace.
func joined(rel, below string) string {
	if below == "" {
		return rel
	}
	return path.Join(rel, below)
}

// visible shows control characters of a file by their escapes, as they are no part
// of what a terminal would make of it. A tab is a tab.
func visible(text string) string {
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func hidden(r rune) bool { return r != '\t' && unicode.IsControl(r) }

// lineText is a line of a search as it is shown: what was cut off is counted,
// and what would not be seen is named.
func lineText(l env.SearchLine) string {
	text := l.Text
	after := l.Size - l.Cut - int64(len(text))
	if after == 0 {
		text = strings.TrimSuffix(text, "\r")
	}
	text = visible(text)
	if l.Cut > 0 {
		text = fmt.Sprintf("[%s before] ...%s", plural(int(l.Cut), "byte"), text)
	}
	if after > 0 {
		text += fmt.Sprintf("... [%s more]", plural(int(after), "byte"))
	}
	return text
}

// lines names a range for Observation.Targets.
func lines(rel string, start, end int) string {
	if start == end {
		return fmt.Sprintf("%s:%d", rel, start)
	}
	return fmt.Sprintf("%s:%d-%d", rel, start, end)
}

// plural is "1 line", "2 lines".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "ch") {
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// shorten cuts a line at limit bytes and says how much is missing.
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
