package closure

import (
	"slices"
	"strings"
)

// checker collects what a step names although it was not shown.
type checker struct {
	*known
	names  map[string]bool // identifiers of the repository; nil if they are unknown
	file   string          // last element of the path that lines without a file belong to; "" if unknown
	last   int             // last line of the view that the call asks for, or 0
	bound  map[string]bool // names that the step's own code binds, and files that it writes
	viewed []int           // first and last lines of ranges that the call views
	own    string          // the texts of the step, whose numbers a calculation may use
	out    []Entity

	isScript bool     // the text is a script of the agent, in which values are inputs that it makes up
	written  []string // files that the step's commands write, and names that their scripts bind
}

// mode says which words of a text are entities.
type mode int

const (
	prose   mode = iota // those that look like code
	words               // and those that are names in the repository, as in a search
	code                // all
	pattern             // as words, but parts of known words are known
)

func (c *checker) report(kind, text string) {
	if e := (Entity{kind, text}); !slices.Contains(c.out, e) {
		c.out = append(c.out, e)
	}
}

// bind remembers the names that code assigns, defines or imports. They are inventions, not leaks.
func (c *checker) bind(text string) {
	add := func(names string) {
		for n := range strings.FieldsFuncSeq(names, func(r rune) bool { return r == ',' || r == ' ' || r == '(' || r == ')' || r == '*' || r == '\t' }) {
			if isWordText(n) {
				c.bindName(n)
			}
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		for at := 0; at < len(line); at++ { // assignments, also several in a line
			if line[at] != '=' || at == 0 || at+1 < len(line) && line[at+1] == '=' || strings.IndexByte("=!<>+-*/%|&^~", line[at-1]) >= 0 {
				continue
			}
			target := line[:at]
			if cut := strings.LastIndexAny(target, ";([{"); cut >= 0 { // a keyword argument is a name of the called function
				if target[cut] != ';' && !c.isScript {
					continue
				}
				isArgument := target[cut] != ';'
				target = target[cut+1:]
				if isArgument {
					target = target[strings.LastIndexByte(target, ',')+1:]
				}
			}
			target = strings.TrimPrefix(strings.TrimSpace(target), "!")
			target, _, _ = strings.Cut(target, ":")
			if own, ok := strings.CutPrefix(target, "self."); ok && c.isScript {
				target = own
			}
			if !strings.ContainsAny(target, ".[") {
				add(target)
			}
		}
		for _, keyword := range []string{"def ", "class ", "for ", " as ", "lambda ", "import "} {
			rest := line
			for {
				_, after, ok := strings.Cut(rest, keyword)
				if !ok {
					break
				}
				end := len(after)
				switch keyword {
				case "for ":
					end = strings.Index(after, " in ")
				case "lambda ":
					end = strings.IndexByte(after, ':')
				case "class ", " as ":
					end = strings.IndexAny(after, " (:,)\n")
				case "def ":
					end = strings.IndexAny(after, ")\n")
				case "import ":
					end = strings.IndexAny(after, ";\n")
				}
				if end < 0 {
					end = len(after)
				}
				names := after[:end]
				if keyword == "def " || keyword == "lambda " {
					names = withoutDefaults(names)
				}
				if keyword != "import " || standard[strings.TrimSpace(names)] || importsStandard(line) {
					add(names)
				}
				rest = after
			}
		}
	}
}

func (c *checker) bindName(name string) {
	if c.bound == nil {
		c.bound = map[string]bool{}
	}
	c.bound[name] = true
}

// importsStandard reports whether a line imports names from one of Python's modules.
func importsStandard(line string) bool {
	module, ok := strings.CutPrefix(strings.TrimSpace(line), "from ")
	root, _, _ := strings.Cut(module, " ")
	root, _, _ = strings.Cut(root, ".")
	return ok && standard[root]
}

// withoutDefaults removes annotations and defaults from parameters.
func withoutDefaults(parameters string) string {
	var out []string
	for part := range strings.SplitSeq(parameters, ",") {
		if end := strings.IndexAny(part, ":="); end >= 0 {
			part = part[:end]
		}
		out = append(out, part)
	}
	return strings.Join(out, ",")
}
