// Package selection decides which episodes a dataset keeps for training. A
// selection is a named recipe: predicates in CEL over the columns of table
// episodes, exact deduplication, and caps per group. Applying it yields the
// ids, the reason of every rejection and a funnel whose numbers add up. It
// imports schemas, schemas/arrowrec and CEL.
package selection

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

//go:embed recipes/*.yaml
var recipes embed.FS

// Default is the selection that publishing uses when none is named.
const Default = "success-v1"

// Recipe is a selection as its file states it.
type Recipe struct {
	Name        string         `yaml:"name" json:"name"`
	Description string         `yaml:"description" json:"description,omitempty"`
	Predicates  []Predicate    `yaml:"predicates" json:"predicates"`
	Dedup       []string       `yaml:"dedup" json:"dedup,omitempty"` // columns; equal values are duplicates, null is none
	Caps        map[string]int `yaml:"caps" json:"caps,omitempty"`   // column -> most episodes per value
	Seed        int64          `yaml:"seed" json:"seed"`             // orders a group before its cap

	compiled []program
}

// Predicate is one named CEL expression of type bool.
type Predicate struct {
	Name string `yaml:"name" json:"name"`
	Expr string `yaml:"expr" json:"expr"`
}

// Builtin lists the names of the recipes that come with the program.
func Builtin() []string {
	entries, err := recipes.ReadDir("recipes")
	if err != nil {
		panic(err) // embedded
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// maxRecipeBytes bounds a recipe file.
const maxRecipeBytes = 1 << 20

// Load reads a built-in recipe by name, or a YAML file by path. Every
// expression is compiled and checked against the columns.
func Load(nameOrFile string) (*Recipe, error) {
	if slices.Contains(Builtin(), nameOrFile) {
		raw, err := recipes.ReadFile(path.Join("recipes", nameOrFile+".yaml"))
		if err != nil {
			return nil, fmt.Errorf("loading selection %s: %w", nameOrFile, err)
		}
		return parse(nameOrFile, raw)
	}
	f, err := os.Open(nameOrFile)
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("loading selection %q: no such file, and no built-in of that name: choose one of %s", nameOrFile, strings.Join(Builtin(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("loading selection: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxRecipeBytes))
	if err != nil {
		return nil, fmt.Errorf("loading selection %s: %w", nameOrFile, err)
	}
	return parse(nameOrFile, raw)
}

func parse(where string, raw []byte) (*Recipe, error) {
	var r Recipe
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&r); err != nil {
		return nil, fmt.Errorf("selection %s: %w", where, err)
	}
	if r.Name == "" || strings.ContainsAny(r.Name, "/\\ \x00") || strings.HasPrefix(r.Name, ".") {
		return nil, fmt.Errorf("selection %s: name %q: give it a name that can be a file name", where, r.Name)
	}
	for _, col := range r.groupColumns() {
		if c, ok := arrowrec.Episodes.Column(col); !ok || c.Kind != arrowrec.Text {
			return nil, fmt.Errorf("selection %s: %q is not a text column of episodes, which dedup and caps need", where, col)
		}
	}
	for col, k := range r.Caps {
		if k < 1 {
			return nil, fmt.Errorf("selection %s: cap %s: %d: want at least 1", where, col, k)
		}
	}
	seen := map[string]bool{}
	for _, p := range r.Predicates {
		if p.Name == "" || seen[p.Name] {
			return nil, fmt.Errorf("selection %s: predicate name %q is empty or used twice", where, p.Name)
		}
		seen[p.Name] = true
		prog, err := compile(p.Expr)
		if err != nil {
			return nil, fmt.Errorf("selection %s: predicate %s: %w", where, p.Name, err)
		}
		r.compiled = append(r.compiled, prog)
	}
	return &r, nil
}

func (r *Recipe) groupColumns() []string { return slices.Concat(r.Dedup, r.capColumns()) }

func (r *Recipe) capColumns() []string {
	var cols []string
	for c := range r.Caps {
		cols = append(cols, c)
	}
	slices.Sort(cols)
	return cols
}

// SHA256 identifies the recipe's content.
func (r *Recipe) SHA256() string { return schemas.Hash(r) }
