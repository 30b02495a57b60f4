package drivers

import (
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

// Interpreter is a Python of the host, as it describes itself. All paths are absolute.
type Interpreter struct {
	Version    string `json:"version"`
	Executable string `json:"executable"`
	Prefix     string `json:"prefix"`
	BasePrefix string `json:"base_prefix"`
}

// Bin is the directory of the executable.
func (p Interpreter) Bin() string { return filepath.Dir(p.Executable) }

// Missing lists which of the names python and python3 Bin lacks.
func (p Interpreter) Missing() []string {
	var out []string
	for _, name := range []string{"python", "python3"} {
		if _, err := os.Stat(filepath.Join(p.Bin(), name)); err != nil {
			out = append(out, name)
		}
	}
	return out
}

const probe = `import json, platform, sys
print(json.dumps(dict(version=platform.python_version(), executable=sys.executable,
    prefix=sys.prefix, base_prefix=sys.base_prefix)))`

// Interpreters looks up the host's interpreters and asks each only once. The zero value is ready. Safe for
// concurrent use.
type Interpreters struct {
	mu    sync.Mutex
	known map[string]Interpreter
}

// Find starts the interpreter at path to let it describe itself, because that sees through shims, symlinks and
// virtual environments. An empty path means the system's Python. The error says what to install or to set.
func (i *Interpreters) Find(ctx context.Context, path string) (Interpreter, error) {
	if path == "" {
		path = "/usr/bin/python3"
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if p, ok := i.known[path]; ok {
		return p, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-I", "-c", probe)
	cmd.WaitDelay = time.Second
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
