package drivers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Interpreter describes a Python interpreter of the host. All paths are absolute.
type Interpreter struct {
	Version    string `json:"version"`
	Executable string `json:"executable"`
	Prefix     string `json:"prefix"`
	BasePrefix string `json:"base_prefix"`
}

// Bin returns the directory of the executable.
func (p Interpreter) Bin() string { return filepath.Dir(p.Executable) }

// MissingNames returns those of the names python and python3 that do not exist in Bin.
func (p Interpreter) MissingNames() []string {
	var out []string
	for _, name := range []string{"python", "python3"} {
		if _, err := os.Stat(filepath.Join(p.Bin(), name)); err != nil {
			out = append(out, name)
		}
	}
	return out
}

const queryScript = `import json, platform, sys
print(json.dumps(dict(version=platform.python_version(), executable=sys.executable,
    prefix=sys.prefix, base_prefix=sys.base_prefix)))`

// Interpreters finds the host's interpreters. It queries each of them only once. The zero value is ready to use. Safe
// for concurrent use.
type Interpreters struct {
	mu    sync.Mutex
	known map[string]Interpreter
}

// Find runs the interpreter at path to query its version and paths, because only the interpreter can resolve shims,
// symlinks and virtual environments. If path is empty, Find uses the system's Python.
func (i *Interpreters) Find(ctx context.Context, path string) (Interpreter, error) {
	path = cmp.Or(path, "/usr/bin/python3")
	i.mu.Lock()
	defer i.mu.Unlock()
	if p, ok := i.known[path]; ok {
		return p, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-I", "-c", queryScript)
	cmd.WaitDelay = 10 * time.Second // a busy machine may take seconds to copy the output
	var stderr Tail
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return Interpreter{}, fmt.Errorf("no Python at %s: install it (Debian, Ubuntu: apt install python3) or name one with --python", path)
	}
	var p Interpreter
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil || !filepath.IsAbs(p.Executable) || !filepath.IsAbs(p.Prefix) || !filepath.IsAbs(p.BasePrefix) {
		return Interpreter{}, fmt.Errorf("%s does not work as a Python interpreter: %w %s", path, err, stderr.String())
	}
	if i.known == nil {
		i.known = map[string]Interpreter{}
	}
	i.known[path] = p
	return p, nil
}
