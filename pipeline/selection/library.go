package selection

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
)

// NamedExpr is a predefined expression that other expressions can use by name. Most are of type bool
// and are called named predicates; some are numbers (see Kind).
type NamedExpr struct {
	Name    string  `yaml:"name" json:"name"`
	Params  []Param `yaml:"params" json:"params,omitempty"`
	Kind    string  `yaml:"kind" json:"kind,omitempty"` // type of its value: int or double; "" means bool
	Expr    string  `yaml:"expr" json:"expr"`
	Meaning string  `yaml:"meaning" json:"meaning"`

	body     ast.Expr   // Expr with named predicates expanded
	defaults []ast.Expr // for each parameter; nil if it is required
}

// Param is a parameter of a NamedExpr. Default is an expression; "" means that the parameter
// is required.
type Param struct {
	Name    string `yaml:"name" json:"name"`
	Default string `yaml:"default" json:"default,omitempty"`
}

// Usage returns the signature, such as name(a, b=1).
func (n NamedExpr) Usage() string {
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
func (n NamedExpr) required() int {
	k := slices.IndexFunc(n.Params, func(p Param) bool { return p.Default != "" })
	if k < 0 {
		return len(n.Params)
	}
	return k
}

// describeArity says how many arguments a call takes, for error messages.
func (n NamedExpr) describeArity() string {
	minArgs, maxArgs := n.required(), len(n.Params)
	switch {
	case maxArgs == 0:
		return "takes no arguments"
	case minArgs == maxArgs && maxArgs == 1:
		return "takes 1 argument"
	case minArgs == maxArgs:
		return fmt.Sprintf("takes %d arguments", maxArgs)
	}
	return fmt.Sprintf("takes %d to %d arguments", minArgs, maxArgs)
}

// library is the list of named predicates in predicates.yaml, parsed.
type library struct {
	list   []*NamedExpr
	byName map[string]*NamedExpr
}

// names returns all names that an expression can use.
func (l *library) names() []string {
	names := slices.Collect(maps.Keys(reservedNames()))
	names = slices.AppendSeq(names, maps.Keys(l.byName))
	slices.Sort(names)
	return names
}
