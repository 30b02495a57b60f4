package prompts

// This file loads the files with which users replace embedded templates. These files can use
// other files and the embedded templates by name.
//
// In {{template "NAME" .}}, NAME is a template from a {{define}}, a file (relative to the
// file that contains the action) or an embedded template. The first that exists wins, in
// this order. {{include "NAME" .}} accepts a file or an embedded template. It returns text for
// a pipeline: {{include "notes.md" . | trim_message "200 tokens" "end"}}.

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template/parse"

	template "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/tracesmith/tracesmith/schemas"
)

// Files holds the paths of a user's templates, which replace those of an agent. "" keeps the
// agent's template.
type Files struct {
	System       string
	Problem      string
	SolveSystem  string // for a second conversation
	SolveProblem string // for a second conversation
}

// roles returns, for each file, the name of its setting under agent.prompts and its path.
func (f Files) roles() [][2]string {
	return [][2]string{{"system", f.System}, {"problem", f.Problem}, {"solve_system", f.SolveSystem}, {"solve_problem", f.SolveProblem}}
}

const (
	maxFile  = 1 << 20 // bytes of one template
	maxFiles = 100
)

// Load reads a user's files and all files that they use. If no file is set, it returns the
// embedded templates. An error in a template names the file and the line.
func Load(files Files) (*Set, error) {
	if files == (Files{}) {
		return builtin, nil
	}
	s := &Set{files: files}
	s.templates = template.Must(s.root().ParseFS(embedded, "*.tmpl"))
	l := loader{set: s.templates, hashes: map[string]string{}}
	for _, role := range files.roles() {
		if role[1] == "" {
			continue
		}
		if err := l.load(role[1]); err != nil {
			return nil, fmt.Errorf("agent.prompts.%s: %w: %s", role[0], err, remedy)
		}
	}
	if err := l.checkPending(); err != nil {
		return nil, fmt.Errorf("agent.prompts: %w: %s", err, remedy)
	}
	s.rewriteHas()
	s.fileVersions = l.names(files)
	return s, nil
}

// root returns an empty template with the functions that all templates may call.
func (s *Set) root() *template.Template {
	return template.New("").Option("missingkey=error").Funcs(template.FuncMap{
		"trim": strings.TrimSpace, "to_pretty_json": prettyJSON, "trim_message": s.trimMessage, "include": s.include, "steps": steps, "indent": indent, "has": has,
	})
}

// loader reads files into set.
type loader struct {
	set     *template.Template
	hashes  map[string]string // by path
	order   []string          // paths, in the order of reading
	stack   []string          // files being read, outermost first
	pending []reference       // unresolved names, which a later file may define
}

type reference struct{ place, name, file string }

// load parses a file as the template named path, and then the files that it uses.
func (l *loader) load(path string) error {
	if slices.Contains(l.stack, path) {
		return fmt.Errorf("%s uses itself, by way of %s", path, strings.Join(l.stack, " -> "))
	}
	if _, done := l.hashes[path]; done {
		return nil
	}
	if len(l.order) >= maxFiles {
		return fmt.Errorf("%s: templates use more than %d files", path, maxFiles)
	}
	text, err := readFile(path)
	if err != nil {
		return err
	}
	l.hashes[path], l.order = schemas.ShortHash(text), append(l.order, path)
	if _, err := l.set.New(path).Parse(text); err != nil {
		return err // already names the file and the line
	}
	l.stack = append(l.stack, path)
	defer func() { l.stack = l.stack[:len(l.stack)-1] }()
	for _, t := range l.set.Templates() {
		if t.Tree != nil && t.Tree.ParseName == path { // the file itself or a template that it defines
			if err := visit(t.Root, func(n parse.Node) error { return l.rename(path, t.Tree, n) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// resolve returns the full name of the template that name refers to in file from. It loads
// the template if it is a file. place is for messages.
func (l *loader) resolve(from string, place, name string) (string, error) {
	file := name
	if !filepath.IsAbs(name) {
		file = filepath.Join(filepath.Dir(from), name)
	}
	known := l.set.Lookup(name)
	if known != nil && known.Tree != nil && known.ParseName != name { // a {{define}}
		return name, nil
	}
	if _, err := os.Stat(file); err == nil {
		return file, l.load(file)
	}
	if known == nil {
		l.pending = append(l.pending, reference{place, name, file})
	}
	return name, nil
}

// checkPending returns an error if a pending name is still undefined.
func (l *loader) checkPending() error {
	for _, p := range l.pending {
		if l.set.Lookup(p.name) == nil {
			return fmt.Errorf("%s: there is no file %s, and no template is defined as %q", p.place, p.file, p.name)
		}
	}
	return nil
}

// rename replaces the name that a node uses, if any, with the name that it resolves to.
func (l *loader) rename(from string, tree *parse.Tree, n parse.Node) (err error) {
	switch n := n.(type) {
	case *parse.TemplateNode:
		n.Name, err = l.resolve(from, fmt.Sprintf("%s:%d", from, n.Line), n.Name)
	case *parse.CommandNode:
		err = l.include(from, tree, n)
	}
	return err
}

// include replaces the name in a call of the function include, as rename does.
func (l *loader) include(from string, tree *parse.Tree, c *parse.CommandNode) error {
	for i, arg := range c.Args {
		id, ok := arg.(*parse.IdentifierNode)
		if !ok || id.Ident != "include" {
			continue
		}
		place, _ := tree.ErrorContext(arg)
		var name *parse.StringNode
		if i+1 < len(c.Args) {
			name, _ = c.Args[i+1].(*parse.StringNode)
		}
		if i > 0 || name == nil {
			return fmt.Errorf("%s: include takes a name in quotes, as in {{include \"part.tmpl\" .}}", place)
		}
		if known := l.set.Lookup(name.Text); known != nil && known.Tree != nil && known.ParseName != name.Text {
			return fmt.Errorf("%s: include takes a file: use {{template %q .}} for a defined template", place, name.Text)
		}
		var err error
		if name.Text, err = l.resolve(from, place, name.Text); err != nil {
			return err
		}
	}
	return nil
}

// names returns the settings, names and hashes of all files, for Set.Version.
func (l *loader) names(files Files) string {
	text := ""
	for _, path := range l.order {
		role := filepath.Base(path)
		for _, r := range files.roles() {
			if path == r[1] {
				role = r[0] + ":" + role
			}
		}
		text += " " + role + "@" + l.hashes[path][:12]
	}
	return text
}

func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading a template: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", fmt.Errorf("reading a template: %w", err)
	}
	if len(text) > maxFile {
		return "", fmt.Errorf("template %s is longer than %d MiB", path, maxFile>>20)
	}
	return string(text), nil
}
