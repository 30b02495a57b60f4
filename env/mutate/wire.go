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

// Bounds of an answer. The Python side gives up on a file before it reaches them.
const (
	maxAnswer = 32 << 20
	maxSites  = 40_000
	maxText   = 1000 // bytes of a name or note
	maxWhy    = 4000
)

// errGone is the error if the program has ended, or was ended, during a request.
var errGone = errors.New("the mutator did not answer")

// request is one line to the program.
type request struct {
	ID    int                                       `json:"id"`
	Op    string                                    `json:"op"`
	File  string                                    `json:"file,omitempty"`
	Lines []int                                     `json:"lines"` // null: all
	Types map[string]map[string][]string            `json:"types,omitempty"`
	Sites map[string][]string                       `json:"sites,omitempty"`
	Typed map[string]map[string]map[string][]string `json:"typed,omitempty"` // Types of each file
	Func  string                                    `json:"func,omitempty"`
	Text  string                                    `json:"text,omitempty"`
	// Versions of files: [before, after], see the calls in __main__.py.
	Versions map[string][2][]byte `json:"versions,omitempty"`
}

func (r request) encode() ([]byte, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding a request to the mutator: %w", err)
	}
	return append(line, '\n'), nil
}

// files lists the files that the answer may name.
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

// greeting, listing, change, outline and display are the answers.
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
	Functions []Outlined `json:"functions"`
}

type display struct {
	Text   string `json:"text"`   // of one function
	Around string `json:"around"` // its file without the function's body
}

// answer is one of them. check compares it with the request.
type answer interface{ check(r request) error }

// decode reads an answer. It does not trust the answer, because the program shares a sandbox
// with the repository.
func decode(line []byte, r request, into answer) error {
	var head struct {
		ID      int    `json:"id"`
		Refused string `json:"refused"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return fmt.Errorf("%w sensibly, it said %.200q", errGone, line)
	}
	if head.ID != r.ID {
		return fmt.Errorf("%w: it answered request %d instead of %d", errGone, head.ID, r.ID)
	}
	if head.Refused != "" {
		return &RefusedError{Why: strings.ToValidUTF8(head.Refused[:min(len(head.Refused), maxWhy)], "?")}
	}
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("%w sensibly: %w", errGone, err)
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
		if !operatorID.MatchString(o.ID) || !plain(o.Family, o.Title, o.Symptom) {
			return fmt.Errorf("%w sensibly: operator %.40q", errGone, o.ID)
		}
	}
	return nil
}

func (l *listing) check(r request) error {
	if len(l.Sites) > maxSites {
		return fmt.Errorf("%w sensibly: %d sites in one file", errGone, len(l.Sites))
	}
	seen := map[string]bool{}
	for _, s := range l.Sites {
		if !siteID.MatchString(s.ID) || seen[s.ID] || s.File != r.File || !operatorID.MatchString(s.Operator) ||
			s.Line < 1 || s.EndLine < s.Line || s.Start < 0 || s.End < s.Start || !plain(s.Func, s.Family, s.Note) {
			return fmt.Errorf("%w sensibly: site %.40q", errGone, s.ID)
		}
		seen[s.ID] = true
	}
	return nil
}

func (c *change) check(r request) error {
	files := r.files()
	if len(c.Patch) == 0 || len(c.Funcs) == 0 || len(c.Funcs) > maxSites {
		return fmt.Errorf("%w sensibly: an empty change", errGone)
	}
	for _, f := range c.Funcs {
		if !slices.Contains(files, f.File) || f.Line < 0 || f.EndLine < f.Line || !hash.MatchString(f.Before) ||
			!hash.MatchString(f.After) || !hash.MatchString(f.Shape) || f.Before == f.After || !plain(f.Name) {
			return fmt.Errorf("%w sensibly: function %.40q", errGone, f.Name)
		}
	}
	return nil
}

func plain(texts ...string) bool {
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
		return fmt.Errorf("%w sensibly: %d functions in one file", errGone, len(o.Functions))
	}
	for _, f := range o.Functions {
		if f.File != r.File || f.Line < 1 || f.EndLine < f.Line || f.Before == "" || !hash.MatchString(f.Before) || f.After != "" ||
			f.Statements < 0 || !plain(f.Name) || !plain(f.Calls...) {
			return fmt.Errorf("%w sensibly: function %.40q", errGone, f.Name)
		}
	}
	return nil
}

func (d *display) check(request) error {
	if d.Text == "" || d.Around == "" {
		return fmt.Errorf("%w sensibly: an empty function", errGone)
	}
	return nil
}
