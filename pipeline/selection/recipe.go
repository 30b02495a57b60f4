package selection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// Recipe is the content of a recipe file, merged with the recipe that it extends.
type Recipe struct {
	Name        string         `yaml:"name" json:"name"`
	Description string         `yaml:"description" json:"description,omitempty"`
	Extends     string         `yaml:"extends" json:"-"` // recipe whose predicates come before these and whose other settings are the defaults
	Without     []string       `yaml:"without" json:"-"` // names of inherited predicates and reports to leave out
	Predicates  []Predicate    `yaml:"predicates" json:"predicates"`
	Report      []Predicate    `yaml:"report" json:"report,omitempty"`           // counted over the kept episodes; do not reject any
	Dedup       []string       `yaml:"dedup" json:"dedup,omitempty"`             // columns whose equal values are duplicates; null is never a duplicate
	Near        float64        `yaml:"near" json:"near,omitempty"`               // MinHash similarity at which an episode is a duplicate; 0 = off
	ReportNear  float64        `yaml:"report_near" json:"report_near,omitempty"` // like Near, but only counted
	Group       string         `yaml:"group" json:"group,omitempty"`             // column whose values define the groups; "" = group_id
	Select      string         `yaml:"select" json:"select,omitempty"`           // one of SelectModes: which episodes of a group are kept; "" = all
	Best        int            `yaml:"best" json:"best,omitempty"`               // number of episodes of a group that Select keeps; 0 = 1
	Caps        map[string]int `yaml:"caps" json:"caps,omitempty"`               // column -> maximum number of episodes per value
	Seed        int64          `yaml:"seed" json:"seed"`                         // seed of the random order before caps

	programs, reports []program
}

// Predicate is an expression of type bool with a name. In YAML it can be written as a plain
// expression, which is then also the name.
type Predicate struct {
	Name string `yaml:"name" json:"name"`
	Expr string `yaml:"expr" json:"expr"`
}

// UnmarshalYAML implements yaml.Unmarshaler for both forms.
func (p *Predicate) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		p.Name, p.Expr = node.Value, node.Value
		return nil
	}
	type plain Predicate
	for i := 0; i+1 < len(node.Content); i += 2 { // node.Decode does not honor KnownFields
		if key := node.Content[i].Value; key != "name" && key != "expr" {
			return fmt.Errorf("line %d: a predicate has a name and an expr, not %q", node.Content[i].Line, key)
		}
	}
	return node.Decode((*plain)(p))
}

// SelectModes lists the values of Recipe.Select:
//
//   - shortest: fewest completion tokens (if known for the whole group), then fewest turns
//   - best: resolved, then highest reward, then shortest
//   - first: lowest attempt number
//   - correct: all resolved episodes
//
// In a recipe file, all means "", and best-3 means best with best: 3.
var SelectModes = []string{"shortest", "best", "first", selectCorrect}

const selectCorrect = "correct"

// FromExpr returns a recipe with the expressions as predicates. The name of each predicate is
// its expression.
func FromExpr(exprs ...string) (*Recipe, error) {
	r := &Recipe{Name: "expression", Group: defaultGroup}
	return r, r.Require(exprs...)
}

// Require adds expressions as predicates, like FromExpr.
func (r *Recipe) Require(exprs ...string) error {
	for _, e := range exprs {
		r.Predicates = append(r.Predicates, Predicate{Name: e, Expr: e})
	}
	return r.check("-e")
}

// RequirePredicate adds a predicate.
func (r *Recipe) RequirePredicate(p Predicate) error {
	r.Predicates = append(r.Predicates, p)
	return r.check("selection " + p.Name)
}

const defaultGroup = "group_id"

// check validates and compiles the recipe. where begins its error messages.
func (r *Recipe) check(where string) error {
	if r.Name == "" {
		return fmt.Errorf("%s: the name is missing: a recipe has name and predicates, as docs/filter.md describes", where)
	}
	if strings.ContainsAny(r.Name, "/\\ \x00") || strings.HasPrefix(r.Name, ".") {
		return fmt.Errorf("%s: name %q: use a name that is valid as a file name", where, r.Name)
	}
	r.Group = cmp.Or(r.Group, defaultGroup)
	for _, col := range slices.Concat(r.Dedup, r.capColumns(), []string{r.Group}) {
		if c, ok := arrowrec.Episodes.Column(col); !ok || c.Kind != arrowrec.Text {
			return fmt.Errorf("%s: %q is not a text column of episodes, which dedup, group and caps need%s", where, col, didYouMean(col, textColumns()))
		}
	}
	for col, k := range r.Caps {
		if k < 1 {
			return fmt.Errorf("%s: cap %s: %d: want at least 1", where, col, k)
		}
	}
	if r.Near < 0 || r.Near > 1 || r.ReportNear < 0 || r.ReportNear > 1 {
		return fmt.Errorf("%s: near and report_near are similarities from 0 to 1", where)
	}
	if text, ok := strings.CutPrefix(r.Select, "best-"); ok && r.Best == 0 {
		if n, err := strconv.Atoi(text); err == nil && n > 0 {
			r.Select, r.Best = "best", n
		}
	}
	if r.Select == "all" {
		r.Select = ""
	}
	if r.Select != "" && !slices.Contains(SelectModes, r.Select) {
		return fmt.Errorf("%s: select %q: choose one of all, best-N, %s", where, r.Select, strings.Join(SelectModes, ", "))
	}
	if r.Best < 0 || r.Best > 0 && (r.Select == "" || r.Select == selectCorrect) {
		return fmt.Errorf("%s: best %d: it sets how many episodes of a group select keeps: use at least 1, together with shortest, best or first", where, r.Best)
	}
	seen := map[string]bool{}
	for _, p := range slices.Concat(r.Predicates, r.Report) {
		if strings.TrimSpace(p.Expr) == "" {
			return fmt.Errorf("%s: predicate %q has no expression: write one, such as resolved", where, p.Name)
		}
		if p.Name == "" || seen[p.Name] {
			return fmt.Errorf("%s: predicate name %q is empty or used twice", where, p.Name)
		}
		seen[p.Name] = true
	}
	var err error
	if r.programs, err = compileAll(where, r.Predicates); err != nil {
		return err
	}
	r.reports, err = compileAll(where, r.Report)
	return err
}

func compileAll(where string, predicates []Predicate) ([]program, error) {
	var out []program
	for _, p := range predicates {
		prog, err := compile(p.Expr)
		if err != nil {
			if p.Name != p.Expr {
				where += ": predicate " + p.Name
			}
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		out = append(out, prog)
	}
	return out, nil
}

// extend merges the recipe base into r. where is the name of r in error messages.
func (r *Recipe) extend(where string, base *Recipe) error {
	var names []string
	for _, p := range slices.Concat(base.Predicates, base.Report) {
		names = append(names, p.Name)
	}
	for _, name := range r.Without {
		if !slices.Contains(names, name) {
			return fmt.Errorf("selection %s: without %q: %s has no predicate of that name%s", where, name, base.Name, didYouMean(name, names))
		}
	}
	kept := func(list []Predicate) []Predicate {
		return slices.DeleteFunc(slices.Clone(list), func(p Predicate) bool { return slices.Contains(r.Without, p.Name) })
	}
	r.Predicates = append(kept(base.Predicates), r.Predicates...)
	r.Report = append(kept(base.Report), r.Report...)
	if r.Dedup == nil {
		r.Dedup = base.Dedup
	}
	r.Near, r.ReportNear = cmp.Or(r.Near, base.Near), cmp.Or(r.ReportNear, base.ReportNear)
	r.Group = cmp.Or(r.Group, base.Group)
	if r.Select == "" {
		r.Select, r.Best = base.Select, cmp.Or(r.Best, base.Best)
	}
	if r.Caps == nil {
		r.Caps = base.Caps
	}
	r.Seed = cmp.Or(r.Seed, base.Seed)
	return nil
}

func (r *Recipe) capColumns() []string {
	return slices.Sorted(maps.Keys(r.Caps))
}

// About returns the recipe's description.
func (r *Recipe) About() string { return r.Description }

// SHA256 identifies the recipe and the definitions of its named predicates.
func (r *Recipe) SHA256() string {
	return schemas.Hash(map[string]any{"recipe": r, "definitions": r.Definitions()})
}

// Definitions returns the expressions of the named predicates that the recipe uses.
func (r *Recipe) Definitions() map[string]string {
	used := map[string]bool{}
	for _, p := range slices.Concat(r.programs, r.reports) {
		for name := range p.used {
			used[name] = true
		}
	}
	return definitions(used)
}

// Expr returns the conjunction of the predicates.
func (r *Recipe) Expr() string {
	if len(r.Predicates) == 1 {
		return r.Predicates[0].Expr
	}
	var parts []string
	for _, p := range r.Predicates {
		parts = append(parts, "("+p.Expr+")")
	}
	return strings.Join(parts, " && ")
}
