package mutate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of an answer. The mutator refuses a file before its answer would reach them.
const (
	maxAnswer = 32 << 20 // bytes
	maxSites  = 40_000
	maxText   = 1000 // bytes of a name or note
	maxWhy    = 4000 // bytes of the reason for a refusal
)

// errNoAnswer means that the mutator ended during a request, did not answer in time, or gave an
// invalid answer.
var errNoAnswer = errors.New("the mutator did not answer correctly")

// request is one line to the mutator. Its operations are methods of Workspace in __main__.py.
type request struct {
	ID    int                                       `json:"id"`
	Op    string                                    `json:"op"`
	File  string                                    `json:"file,omitempty"`
	Lines []int                                     `json:"lines"` // null = all
	Types map[string]map[string][]string            `json:"types,omitempty"`
	Sites map[string][]string                       `json:"sites,omitempty"`
	Typed map[string]map[string]map[string][]string `json:"typed,omitempty"` // Types of each file
	Func  string                                    `json:"func,omitempty"`
	Text  string                                    `json:"text,omitempty"`
	// Versions are the contents of files: [before, after] for compare, [older, newer] for reverse.
	Versions map[string][2][]byte `json:"versions,omitempty"`
}

func (r request) encode() ([]byte, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding a request to the mutator: %w", err)
	}
	return append(line, '\n'), nil
}

// files returns the files that the answer may name.
func (r request) files() []string {
	var out []string
	if r.File != "" {
		out = append(out, r.File)
	}
	for f := range r.Sites {
		out = append(out, f)
	}
	for f := range r.Versions {
		out = append(out, f)
	}
	slices.Sort(out)
	return out
}

// The types of answers are greeting, listing, change, outline and display.

type greeting struct {
	Python    string     `json:"python"`
	Operators []Operator `json:"operators"`
}

type listing struct {
	Sites []Site `json:"sites"`
}

type change struct {
	Patch []byte     `json:"patch"`
	Funcs []Function `json:"funcs"`
}

type outline struct {
	Functions []FunctionOutline `json:"functions"`
}

type display struct {
	Text   string `json:"text"`   // of one function
	Around string `json:"around"` // the text of its file without the function's body
}

// answer is an answer to a request.
type answer interface {
	// check returns an error if the answer is not valid for r.
	check(r request) error
}

// decode decodes an answer. It does not trust the answer, because the mutator shares a sandbox
// with the repository.
func decode(line []byte, r request, into answer) error {
	var head struct {
		ID      int    `json:"id"`
		Refused string `json:"refused"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return fmt.Errorf("%w: output %.200q", errNoAnswer, line)
	}
	if head.ID != r.ID {
		return fmt.Errorf("%w: it answered request %d instead of %d", errNoAnswer, head.ID, r.ID)
	}
	if head.Refused != "" {
		return &RefusedError{Why: strings.ToValidUTF8(head.Refused[:min(len(head.Refused), maxWhy)], "?")}
	}
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	return into.check(r)
}

var (
	siteID     = regexp.MustCompile(`^[0-9a-f]{16}$`)
	operatorID = regexp.MustCompile(`^[a-z][0-9]$`)
	hash       = regexp.MustCompile(`^([0-9a-f]{64})?$`)
)

func (g *greeting) check(request) error {
	for _, o := range g.Operators {
		if !operatorID.MatchString(o.ID) || !isShort(o.Family, o.Title, o.Symptom) {
			return fmt.Errorf("%w: operator %.40q", errNoAnswer, o.ID)
		}
	}
	return nil
}

func (l *listing) check(r request) error {
	if len(l.Sites) > maxSites {
		return fmt.Errorf("%w: %d sites in one file", errNoAnswer, len(l.Sites))
	}
	seen := map[string]bool{}
	for _, s := range l.Sites {
		if !siteID.MatchString(s.ID) || seen[s.ID] || s.File != r.File || !operatorID.MatchString(s.Operator) ||
			s.Line < 1 || s.EndLine < s.Line || s.Start < 0 || s.End < s.Start || !isShort(s.Func, s.Family, s.Note) {
			return fmt.Errorf("%w: site %.40q", errNoAnswer, s.ID)
		}
		seen[s.ID] = true
	}
	return nil
}

func (c *change) check(r request) error {
	files := r.files()
	if len(c.Patch) == 0 || len(c.Funcs) == 0 || len(c.Funcs) > maxSites {
		return fmt.Errorf("%w: an empty change", errNoAnswer)
	}
	for _, f := range c.Funcs {
		if !slices.Contains(files, f.File) || f.Line < 0 || f.EndLine < f.Line || !hash.MatchString(f.Before) ||
			!hash.MatchString(f.After) || !hash.MatchString(f.Shape) || f.Before == f.After || !isShort(f.Name) {
			return fmt.Errorf("%w: function %.40q", errNoAnswer, f.Name)
		}
	}
	return nil
}

// isShort reports whether all texts are valid UTF-8 of at most maxText bytes.
func isShort(texts ...string) bool {
	for _, t := range texts {
		if len(t) > maxText || !utf8.ValidString(t) {
			return false
		}
	}
	return true
}

func bodyHash(funcs []Function) string {
	var keys []string
	for _, f := range funcs {
		keys = append(keys, f.Name+"\x00"+f.After+"\n")
	}
	slices.Sort(keys)
	sum := sha256.Sum256([]byte(strings.Join(keys, "")))
	return hex.EncodeToString(sum[:])
}

func shapeHash(funcs []Function) string {
	var keys []string
	for _, f := range funcs {
		if f.Shape == "" {
			return ""
		}
		keys = append(keys, f.Shape+"\n")
	}
	slices.Sort(keys)
	sum := sha256.Sum256([]byte(strings.Join(keys, "")))
	return hex.EncodeToString(sum[:])
}

func (o *outline) check(r request) error {
	if len(o.Functions) > maxSites {
		return fmt.Errorf("%w: %d functions in one file", errNoAnswer, len(o.Functions))
	}
	for _, f := range o.Functions {
		if f.File != r.File || f.Line < 1 || f.EndLine < f.Line || f.Before == "" || !hash.MatchString(f.Before) || f.After != "" ||
			f.Statements < 0 || !isShort(f.Name) || !isShort(f.Calls...) {
			return fmt.Errorf("%w: function %.40q", errNoAnswer, f.Name)
		}
	}
	return nil
}

func (d *display) check(request) error {
	if d.Text == "" || d.Around == "" {
		return fmt.Errorf("%w: an empty function", errNoAnswer)
	}
	return nil
}
