// Package selection decides which episodes a dataset keeps for training. A
// selection is a recipe: predicates in CEL over the columns of table episodes,
// over steps and over the attempts of one task; deduplication; a choice within
// each group; caps. Applying it yields the ids, the reason of every rejection and
// a funnel whose numbers add up. What was decided can be saved as a file, which
// decides the same again. It imports schemas, schemas/arrowrec, configs/nearest
// and CEL.
package selection

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// Recipe is a selection as its file states it, with what it extends put in.
type Recipe struct {
	Name        string         `yaml:"name" json:"name"`
	Description string         `yaml:"description" json:"description,omitempty"`
	Extends     string         `yaml:"extends" json:"-"` // a recipe: its list comes first, its other settings hold where this one has none
	Without     []string       `yaml:"without" json:"-"` // names of its predicates and reports that are left out
	Predicates  []Predicate    `yaml:"predicates" json:"predicates"`
	Report      []Predicate    `yaml:"report" json:"report,omitempty"`           // counted over what is kept; rejects nothing
	Dedup       []string       `yaml:"dedup" json:"dedup,omitempty"`             // columns; equal values are duplicates, null is none
	Near        float64        `yaml:"near" json:"near,omitempty"`               // MinHash similarity from which on an episode is a duplicate; 0 = none is
	ReportNear  float64        `yaml:"report_near" json:"report_near,omitempty"` // the same, counted only
	Group       string         `yaml:"group" json:"group,omitempty"`             // column whose equal values make a group; "" = group_id
	Select      string         `yaml:"select" json:"select,omitempty"`           // one of Orders: what is kept of a group; "" = all
	Best        int            `yaml:"best" json:"best,omitempty"`               // how many of a group Select keeps; 0 = 1
	Caps        map[string]int `yaml:"caps" json:"caps,omitempty"`               // column -> most episodes per value
	Seed        int64          `yaml:"seed" json:"seed"`                         // orders a group before its cap

	programs, reports []program
}

// Predicate is one named expression of type bool. In YAML it may be the
// expression alone, which is then its name.
type Predicate struct {
	Name string `yaml:"name" json:"name"`
	Expr string `yaml:"expr" json:"expr"`
}

// UnmarshalYAML reads both forms.
func (p *Predicate) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		p.Name, p.Expr = node.Value, node.Value
		return nil
	}
	type plain Predicate
	for i := 0; i+1 < len(node.Content); i += 2 { // a node's own Decode forgets KnownFields
		if key := node.Content[i].Value; key != "name" && key != "expr" {
			return fmt.Errorf("line %d: a predicate has a name and an expr, not %q", node.Content[i].Line, key)
		}
	}
	return node.Decode((*plain)(p))
}

// Orders are the values of Recipe.Select. shortest: fewest completion tokens (if
// all of the group have them), then fewest turns. best: resolved, then the
// highest reward, then shortest. first: the lowest attempt. correct: all that are
// resolved. In a recipe's file all is none of them, and best-3 is best with best: 3.
var Orders = []string{"shortest", "best", "first", selectCorrect}

const selectCorrect = "correct"

// FromExpr is a recipe of the expressions alone, each a predicate by its own text.
func FromExpr(exprs ...string) (*Recipe, error) {
	r := &Recipe{Name: "expression", Group: defaultGroup}
	return r, r.Require(exprs...)
}

// Require adds predicates that are called by their own text.
func (r *Recipe) Require(exprs ...string) error {
	for _, e := range exprs {
		r.Predicates = append(r.Predicates, Predicate{Name: e, Expr: e})
	}
	return r.check("-e")
}

const defaultGroup = "group_id"

// check compiles a whole recipe; where names it in messages.
func (r *Recipe) check(where string) error {
	if r.Name == "" || strings.ContainsAny(r.Name, "/\\ \x00") || strings.HasPrefix(r.Name, ".") {
		return fmt.Errorf("selection %s: name %q: give it a name that can be a file name", where, r.Name)
	}
	if r.Group == "" {
		r.Group = defaultGroup
	}
	for _, col := range slices.Concat(r.Dedup, r.capColumns(), []string{r.Group}) {
		if c, ok := arrowrec.Episodes.Column(col); !ok || c.Kind != arrowrec.Text {
			return fmt.Errorf("selection %s: %q is not a text column of episodes, which dedup, group and caps need%s", where, col, didYouMean(col, textColumns()))
		}
	}
	for col, k := range r.Caps {
		if k < 1 {
			return fmt.Errorf("selection %s: cap %s: %d: want at least 1", where, col, k)
		}
	}
	if r.Near < 0 || r.Near > 1 || r.ReportNear < 0 || r.ReportNear > 1 {
		return fmt.Errorf("selection %s: near and report_near are similarities from 0 to 1", where)
	}
	if text, ok := strings.CutPrefix(r.Select, "best-"); ok && r.Best == 0 {
		if n, err := strconv.Atoi(text); err == nil && n > 0 {
			r.Select, r.Best = "best", n
		}
	}
	if r.Select == "all" {
		r.Select = ""
	}
	if r.Select != "" && !slices.Contains(Orders, r.Select) {
		return fmt.Errorf("selection %s: select %q: choose one of all, best-N, %s", where, r.Select, strings.Join(Orders, ", "))
	}
	if r.Best < 0 || r.Best > 0 && (r.Select == "" || r.Select == selectCorrect) {
		return fmt.Errorf("selection %s: best %d: how many of a group select keeps: at least 1, and beside one of shortest, best, first", where, r.Best)
	}
	seen := map[string]bool{}
	for _, p := range slices.Concat(r.Predicates, r.Report) {
		if strings.TrimSpace(p.Expr) == "" {
			return fmt.Errorf("selection %s: predicate %q has no expression: write one, such as resolved", where, p.Name)
		}
		if p.Name == "" || seen[p.Name] {
			return fmt.Errorf("selection %s: predicate name %q is empty or used twice", where, p.Name)
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
			return nil, fmt.Errorf("selection %s: %w", where, err)
		}
		out = append(out, prog)
	}
	return out, nil
}

// extend puts the recipe that r extends below it.
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
	if r.Group == "" {
		r.Group = base.Group
	}
	if r.Select == "" {
		r.Select, r.Best = base.Select, cmp.Or(r.Best, base.Best)
	}
	if r.Caps == nil {
		r.Caps = base.Caps
	}
	if r.Seed == 0 {
		r.Seed = base.Seed
	}
	return nil
}

func (r *Recipe) capColumns() []string {
	var cols []string
	for c := range r.Caps {
		cols = append(cols, c)
	}
	slices.Sort(cols)
	return cols
}

// About is the recipe's description.
func (r *Recipe) About() string { return r.Description }

// SHA256 identifies the recipe's content and the definitions of what it names.
func (r *Recipe) SHA256() string {
	return schemas.Hash(map[string]any{"recipe": r, "definitions": r.Definitions()})
}

// Definitions are the named predicates that the recipe uses: name -> expression.
func (r *Recipe) Definitions() map[string]string {
	used := map[string]bool{}
	for _, p := range slices.Concat(r.programs, r.reports) {
		for name := range p.used {
			used[name] = true
		}
	}
	return definitions(used)
}

// Expr is the one expression that the predicates come to.
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
