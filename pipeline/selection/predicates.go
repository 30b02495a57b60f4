package selection

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/common/ast"
	"go.yaml.in/yaml/v3"
)

//go:embed predicates.yaml
var predicatesText []byte

// Named is a predicate that expressions can use by its name.
type Named struct {
	Name    string  `yaml:"name" json:"name"`
	Params  []Param `yaml:"params" json:"params,omitempty"`
	Kind    string  `yaml:"kind" json:"kind,omitempty"` // of its value: int, double; "" = bool
	Expr    string  `yaml:"expr" json:"expr"`
	Meaning string  `yaml:"meaning" json:"meaning"`

	body     ast.Expr // with the names in it written out
	defaults []ast.Expr
}

// Param is a parameter of a Named; Default is an expression, "" = must be given.
type Param struct {
	Name    string `yaml:"name" json:"name"`
	Default string `yaml:"default" json:"default,omitempty"`
}

// Usage is the predicate as it is called: name(a, b=1).
func (n Named) Usage() string {
	if len(n.Params) == 0 {
		return n.Name
	}
	var params []string
	for _, p := range n.Params {
		if p.Default != "" {
			p.Name += "=" + p.Default
		}
		params = append(params, p.Name)
	}
	return n.Name + "(" + strings.Join(params, ", ") + ")"
}

// required counts the parameters that must be given: the first ones.
func (n Named) required() int {
	k := slices.IndexFunc(n.Params, func(p Param) bool { return p.Default != "" })
	if k < 0 {
		return len(n.Params)
	}
	return k
}

// takes says how many arguments a call has.
func (n Named) takes() string {
	least, most := n.required(), len(n.Params)
	switch {
	case most == 0:
		return "takes no arguments"
	case least == most && most == 1:
		return "takes 1 argument"
	case least == most:
		return fmt.Sprintf("takes %d arguments", most)
	}
	return fmt.Sprintf("takes %d to %d arguments", least, most)
}

// library is the data file, parsed.
type library struct {
	list   []*Named
	byName map[string]*Named
}

var loadLibrary = sync.OnceValues(func() (*library, error) { return parseLibrary(predicatesText) })

// parseLibrary reads definitions; each may use those before it.
func parseLibrary(raw []byte) (*library, error) {
	lib := &library{byName: map[string]*Named{}}
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&lib.list); err != nil {
		return nil, fmt.Errorf("predicates: %w", err)
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	for _, n := range lib.list {
		if n.Name == "" || lib.byName[n.Name] != nil || words()[n.Name] {
			return nil, fmt.Errorf("predicates: name %q is empty, used twice or that of a column", n.Name)
		}
		for _, p := range n.Params {
			if words()[p.Name] {
				return nil, fmt.Errorf("predicates: %s: parameter %s is the name of a column", n.Name, p.Name)
			}
			var e ast.Expr
			if p.Default != "" {
				if e, err = parseBody(env, lib, p.Default); err != nil {
					return nil, fmt.Errorf("predicates: %s: %w", n.Name, err)
				}
			}
			n.defaults = append(n.defaults, e)
		}
		if n.body, err = parseBody(env, lib, n.Expr); err != nil {
			return nil, fmt.Errorf("predicates: %s: %w", n.Name, err)
		}
		lib.byName[n.Name] = n
	}
	return lib, nil
}

// Predicates lists the named predicates in the order of the data file.
func Predicates() []Named {
	lib, err := loadLibrary()
	if err != nil {
		panic(err) // embedded
	}
	var out []Named
	for _, n := range lib.list {
		out = append(out, *n)
	}
	return out
}

// definitions are those of the names, and what these use is in them already.
func definitions(used map[string]bool) map[string]string {
	if len(used) == 0 {
		return nil
	}
	out := map[string]string{}
	lib, err := loadLibrary()
	if err != nil {
		panic(err) // embedded
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		out[lib.byName[name].Usage()] = lib.byName[name].Expr
	}
	return out
}
