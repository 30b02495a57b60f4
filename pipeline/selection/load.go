package selection

import (
	"bufio"
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

// Limits for recipes.
const (
	maxRecipeBytes = 1 << 20 // size of a recipe file
	maxExtends     = 8       // length of a chain of recipes that extend each other
)

// Builtin returns the names of the built-in recipes.
func Builtin() []string {
	entries, err := recipes.ReadDir("recipes")
	if err != nil {
		panic(err) // cannot happen, because the directory is embedded
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Load reads a built-in recipe by name, or a recipe in YAML, a selection file or the selection of a dataset by path.
func Load(nameOrFile string) (Selector, error) {
	if slices.Contains(Builtin(), nameOrFile) {
		return LoadRecipe(nameOrFile)
	}
	f, err := open(nameOrFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content := bufio.NewReader(f)
	switch first, _ := content.Peek(len(parquetMagic)); {
	case string(first) == parquetMagic:
		return loadPublished(nameOrFile)
	case len(first) > 0 && first[0] == '{':
		return ParseFile(nameOrFile, content)
	}
	return LoadRecipe(nameOrFile)
}

// LoadRecipe reads a built-in recipe by name, or a recipe in YAML by path. It compiles all
// expressions and checks them against the columns.
func LoadRecipe(nameOrFile string) (*Recipe, error) {
	r, err := read(nameOrFile, 0)
	if err != nil {
		return nil, err
	}
	return r, r.check("selection " + nameOrFile)
}

// read reads a recipe and merges it with the recipes that it extends. depth is the number
// of recipes that lead to this one.
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
			return nil, fmt.Errorf("selection %s: without: there are no inherited predicates to leave out: set extends", nameOrFile)
		}
		return &r, nil
	}
	if depth++; depth > maxExtends {
		return nil, fmt.Errorf("selection %s: extends %s: more than %d recipes extend each other, perhaps in a cycle", nameOrFile, r.Extends, maxExtends)
	}
	basePath := r.Extends
	if !slices.Contains(Builtin(), basePath) && !filepath.IsAbs(basePath) {
		basePath = filepath.Join(filepath.Dir(nameOrFile), basePath)
	}
	base, err := read(basePath, depth)
	if err != nil {
		return nil, fmt.Errorf("selection %s: extends %s: %w", nameOrFile, r.Extends, err)
	}
	return &r, r.extend(nameOrFile, base)
}

// recipeText returns the content of a built-in recipe or of a file.
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

// open opens a file. If it does not exist, the error suggests built-in recipes.
func open(nameOrFile string) (*os.File, error) {
	f, err := os.Open(nameOrFile)
	if errors.Is(err, fs.ErrNotExist) {
		what := fmt.Sprintf("loading selection %q: there is no such file and no built-in selection with that name", nameOrFile)
		if similar := nearestBuiltin(nameOrFile); similar != "" {
			return nil, fmt.Errorf("%s: did you mean %q?", what, similar)
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
	// SHA256 identifies the selection. Selections with equal hashes make the same decisions.
	SHA256() string
	// About describes the selection in one sentence.
	About() string
}

// Default is the selection that publish uses by default.
const Default = "success-v1"

// nearestBuiltin returns the built-in recipe with the most similar name; "" if none is similar.
func nearestBuiltin(name string) string { return nearest.Name(name, Builtin(), 3) }
