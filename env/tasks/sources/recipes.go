package sources

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/env/shellwords"
	"github.com/tracesmith/tracesmith/env/workspace"
)

// Recipe describes how to make the environment of an instance: the interpreter, of this host or of a base image, and
// what to install into the task's virtual environment. The environment is made once and cached (see
// env/workspace/setup). Recipes make official images unnecessary, but also apply to instances that have an image.
type Recipe struct {
	Python       string            `yaml:"python"`        // version ("3.9") or path of an interpreter on this host
	Base         string            `yaml:"base"`          // image with the interpreter, for Docker
	PreInstall   []string          `yaml:"pre_install"`   // commands before pip
	Pip          []string          `yaml:"pip"`           // requirements
	Install      []string          `yaml:"install"`       // commands after pip
	Files        map[string]string `yaml:"files"`         // path -> text of files to add, such as those that a build generates
	Hide         []string          `yaml:"hide"`          // see schemas.Task.Hide
	ExcludeTests map[string]string `yaml:"exclude_tests"` // test id -> why the test cannot run here
}

// recipeBook maps instance ids, "owner/name version" or "owner/name" to recipes.
type recipeBook map[string]Recipe

// readRecipes reads a file of recipes. It returns nil if file is "". image is DatasetConfig.Image.
func readRecipes(file, image string) (recipeBook, error) {
	if file == "" {
		if image == buildImage {
			return nil, fmt.Errorf(`image is %q: set "tasks.with.recipes" to a file of recipes`, buildImage)
		}
		return nil, nil
	}
	data, err := readBounded(os.DirFS(filepath.Dir(file)), filepath.Base(file))
	if err != nil {
		return nil, fmt.Errorf("reading recipes: %s: %w", file, err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var book recipeBook
	if err := dec.Decode(&book); err != nil && err != io.EOF {
		return nil, notYAML(file, err)
	}
	return book, nil
}

// condaPath is a command prefix that puts the interpreter of an official image first in PATH.
const condaPath = "PATH=/opt/miniconda3/envs/testbed/bin:$PATH "

// buildImage is the value of the setting "image" that replaces the official image by the environment of a recipe.
const buildImage = "build"

// apply sets the environment of an instance, from its recipe or the image.
func (b recipeBook) apply(in *instance, version, image string) error {
	recipe, known := b[in.task.InstanceID]
	for _, key := range []string{in.repo + " " + version, in.repo} {
		if !known {
			recipe, known = b[key]
		}
	}
	switch {
	case image != "" && image != buildImage:
		in.task.Image = image
	case image == buildImage && !known:
		return fmt.Errorf("no recipe for %s, %q or %q: write one, or leave the instance out", in.task.InstanceID, in.repo+" "+version, in.repo)
	case image == buildImage:
		in.task.Image = recipe.Base
	case in.conda:
		in.task.Entrypoint, in.task.Tests.Command = condaPath+in.task.Entrypoint, condaPath+in.task.Tests.Command
		if in.task.Tests.Command == condaPath {
			in.task.Tests.Command = ""
		}
	}
	if !known {
		return nil
	}
	var err error
	if in.task.Python, err = hostPython(recipe.Python); err != nil && in.task.Image == "" {
		return err
	}
	in.task.Hide = slices.Clone(recipe.Hide)
	in.task.Setup = slices.Clone(recipe.PreInstall)
	if len(recipe.Pip) > 0 {
		quoted := make([]string, len(recipe.Pip))
		for i, r := range recipe.Pip {
			quoted[i] = shellwords.Quote(r)
		}
		in.task.Setup = append(in.task.Setup, "python3 -m pip install -q "+strings.Join(quoted, " "))
	}
	in.task.Setup = append(in.task.Setup, recipe.Install...)
	in.exclude(recipe.ExcludeTests)
	if len(recipe.Files) > 0 {
		change := in.change
		in.change = func(t *workspace.Tree) (*workspace.Tree, error) {
			if change != nil {
				var err error
				if t, err = change(t); err != nil {
					return nil, err
				}
			}
			var changes []workspace.FileEdit
			for name, text := range recipe.Files {
				changes = append(changes, workspace.FileEdit{Path: name, Data: []byte(text)})
			}
			return t.Edit(changes)
		}
	}
	return nil
}

// hostPython returns the path of an interpreter with the given version, from PATH or from pyenv. If version is a path,
// it returns that path. It skips the shims of pyenv in PATH, which work only for activated versions.
func hostPython(version string) (string, error) {
	if version == "" || filepath.IsAbs(version) {
		return version, nil
	}
	home, _ := os.UserHomeDir() // without a home directory, no version of pyenv is found
	root := cmp.Or(os.Getenv("PYENV_ROOT"), filepath.Join(home, ".pyenv"))
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) == filepath.Join(root, "shims") {
			continue
		}
		if p, err := exec.LookPath(filepath.Join(dir, "python"+version)); err == nil {
			return p, nil
		}
	}
	found, err := filepath.Glob(filepath.Join(root, "versions", version+"*", "bin", "python"+version))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("no Python %s on this host: install it (pyenv install %s), or give the recipe the path of one", version, version)
	}
	return found[len(found)-1], nil
}
