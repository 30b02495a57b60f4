package selection

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"sync"

	"cel.dev/cel-go/common/ast"
	"go.yaml.in/yaml/v3"
)

//go:embed predicates.yaml
var predicatesText []byte

var loadLibrary = sync.OnceValues(func() (*library, error) { return parseLibrary(predicatesText) })

// parseLibrary parses the definitions of named predicates. Each can use those before it.
func parseLibrary(raw []byte) (*library, error) {
	lib := &library{byName: map[string]*NamedExpr{}}
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
		if n.Name == "" || lib.byName[n.Name] != nil || reservedNames()[n.Name] {
			return nil, fmt.Errorf("predicates: name %q is empty, used twice or the name of a column", n.Name)
		}
		for _, p := range n.Params {
			if reservedNames()[p.Name] {
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

// definitions returns the expressions of the named predicates in used, by their signatures.
func definitions(used map[string]bool) map[string]string {
	if len(used) == 0 {
		return nil
	}
	out := map[string]string{}
	lib, err := loadLibrary()
	if err != nil {
		panic(err) // cannot happen, because the definitions are embedded and tested
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		out[lib.byName[name].Usage()] = lib.byName[name].Expr
	}
	return out
}
