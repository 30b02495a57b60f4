package selection

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/configs/nearest"
	"go.yaml.in/yaml/v3"
)

//go:embed recipes/*.yaml
var recipes embed.FS

// Bounds of a recipe: bytes of a file, and how many may extend one another.
const (
	maxRecipeBytes = 1 << 20
	maxExtends     = 8
)

// Builtin returns the names of the built-in recipes.
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

// Load reads a built-in recipe by name, or a recipe in YAML or a selection file by
// path.
func Load(nameOrFile string) (Selector, error) {
	if slices.Contains(Builtin(), nameOrFile) {
		return LoadRecipe(nameOrFile)
	}
	f, err := open(nameOrFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	first := make([]byte, 1)
	if _, err := io.ReadFull(f, first); err == nil && first[0] == '{' {
		return ParseFile(nameOrFile, io.MultiReader(bytes.NewReader(first), f))
	}
	return LoadRecipe(nameOrFile)
}

// LoadRecipe reads a built-in recipe by name, or a YAML file by path. Every
// expression is compiled and checked against the columns.
func LoadRecipe(nameOrFile string) (*Recipe, error) {
	r, err := read(nameOrFile, 0)
	if err != nil {
		return nil, err
	}
	return r, r.check(nameOrFile)
}

// read reads a recipe and merges the recipes that it extends.
func read(nameOrFile string, depth int) (*Recipe, error) {
	raw, err := recipeText(nameOrFile)
	if err != nil {
		return nil, err
	}
	var r Recipe
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&r); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("selection %s: %w", nameOrFile, err)
	}
	if r.Extends == "" {
		if len(r.Without) > 0 {
			return nil, fmt.Errorf("selection %s: without: there is nothing to leave out: set extends", nameOrFile)
		}
		return &r, nil
	}
	if depth++; depth > maxExtends {
		return nil, fmt.Errorf("selection %s: extends %s: more than %d recipes extend one another, perhaps in a cycle", nameOrFile, r.Extends, maxExtends)
	}
	below := r.Extends
	if !slices.Contains(Builtin(), below) && !filepath.IsAbs(below) {
		below = filepath.Join(filepath.Dir(nameOrFile), below)
	}
	base, err := read(below, depth)
	if err != nil {
		return nil, fmt.Errorf("selection %s: extends %s: %w", nameOrFile, r.Extends, err)
	}
	return &r, r.extend(nameOrFile, base)
}

func recipeText(nameOrFile string) ([]byte, error) {
	if slices.Contains(Builtin(), nameOrFile) {
		return recipes.ReadFile(path.Join("recipes", nameOrFile+".yaml"))
	}
	f, err := open(nameOrFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxRecipeBytes+1))
	if err == nil && len(raw) > maxRecipeBytes {
		err = fmt.Errorf("it is longer than the maximum of %d bytes", maxRecipeBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("loading selection %s: %w", nameOrFile, err)
	}
	return raw, nil
}

func open(nameOrFile string) (*os.File, error) {
	f, err := os.Open(nameOrFile)
	if errors.Is(err, fs.ErrNotExist) {
		what := fmt.Sprintf("loading selection %q: no such file, and no built-in of that name", nameOrFile)
		if near := nearestOf(nameOrFile); near != "" {
			return nil, fmt.Errorf("%s: did you mean %q?", what, near)
		}
		return nil, fmt.Errorf("%s: choose one of %s", what, strings.Join(Builtin(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("loading selection: %w", err)
	}
	return f, nil
}

// Selector is a selection: a *Recipe or a *File.
type Selector interface {
	// Apply selects episodes. The result depends only on the set of episodes.
	Apply(ctx context.Context, src Source) (Result, error)
	// SHA256 identifies the selection: equal hashes select alike.
	SHA256() string
	// About describes the selection in one sentence.
	About() string
}

// Default is the selection that publish uses by default.
const Default = "success-v1"

// nearestOf returns the built-in recipe with the most similar name; "" if none is similar.
func nearestOf(name string) string { return nearest.Name(name, Builtin(), 3) }
