package selection

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
)

// Named is a predefined expression that other expressions can use by name. Most return a bool,
// some a number (see Kind).
type Named struct {
	Name    string  `yaml:"name" json:"name"`
	Params  []Param `yaml:"params" json:"params,omitempty"`
	Kind    string  `yaml:"kind" json:"kind,omitempty"` // type of its value: int or double; "" = bool
	Expr    string  `yaml:"expr" json:"expr"`
	Meaning string  `yaml:"meaning" json:"meaning"`

	body     ast.Expr // with named predicates expanded
	defaults []ast.Expr
}

// Param is a parameter of a Named. Default is an expression; "" = required.
type Param struct {
	Name    string `yaml:"name" json:"name"`
	Default string `yaml:"default" json:"default,omitempty"`
}

// Usage returns the signature of the predicate: name(a, b=1).
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

// required returns the number of required parameters, which come first.
func (n Named) required() int {
	k := slices.IndexFunc(n.Params, func(p Param) bool { return p.Default != "" })
	if k < 0 {
		return len(n.Params)
	}
	return k
}

// takes describes for error messages how many arguments a call needs.
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

// library is the parsed list of named predicates (predicates.yaml).
type library struct {
	list   []*Named
	byName map[string]*Named
}

// names returns all names that an expression can use.
func (l *library) names() []string {
	names := slices.Collect(maps.Keys(reservedNames()))
	names = slices.AppendSeq(names, maps.Keys(l.byName))
	slices.Sort(names)
	return names
}
