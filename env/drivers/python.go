package drivers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// interpreter is a Python of the host and the directories it needs.
type interpreter struct {
	Version    string `json:"version"`
	Executable string `json:"executable"`
	Prefix     string `json:"prefix"`
	BasePrefix string `json:"base_prefix"`
}

const probe = `import json, platform, sys
print(json.dumps(dict(version=platform.python_version(), executable=sys.executable,
    prefix=sys.prefix, base_prefix=sys.base_prefix)))`

// interpreters remembers what was found out about each path.
type interpreters struct {
	mu    sync.Mutex
	known map[string]interpreter
}

// find asks the interpreter itself, which sees through shims, symlinks and
// virtual environments. "" is the system's.
func (i *interpreters) find(ctx context.Context, path string) (interpreter, error) {
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
	var said tail
	cmd.Stderr = &said
	raw, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return interpreter{}, fmt.Errorf("no Python at %s: install it (Debian, Ubuntu: apt install python3) or name one with --python", path)
	}
	var p interpreter
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil || !filepath.IsAbs(p.Executable) || !filepath.IsAbs(p.Prefix) || !filepath.IsAbs(p.BasePrefix) {
		return interpreter{}, fmt.Errorf("%s does not work as a Python interpreter: %w %s", path, err, said.String())
	}
	if i.known == nil {
		i.known = map[string]interpreter{}
	}
	i.known[path] = p
	return p, nil
}

// outside lists the directories that must be brought in because they are not
// part of /usr, outermost first and none below another.
func (p interpreter) outside() []string {
	dirs := []string{filepath.Clean(p.BasePrefix), filepath.Clean(p.Prefix), filepath.Dir(p.Executable)}
	if real, err := filepath.EvalSymlinks(p.Executable); err == nil {
		dirs = append(dirs, filepath.Dir(real))
	}
	slices.Sort(dirs)
	var out []string
	for _, d := range dirs {
		if !slices.ContainsFunc(append([]string{"/usr", "/bin"}, out...), func(have string) bool { return within(d, have) }) {
			out = append(out, d)
		}
	}
	return out
}

func (p interpreter) bin() string { return filepath.Dir(p.Executable) }

// search is what must come before the system's PATH: the interpreter's own
// directory only where the system's would lead to another.
func (p interpreter) search() []string {
	for _, dir := range strings.Split(systemPath, ":") {
		if dir == p.bin() {
			return []string{binPath}
		}
		for _, name := range []string{"python", "python3"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return []string{binPath, p.bin()}
			}
		}
	}
	return []string{binPath, p.bin()}
}

// missing lists which of the two usual names its directory lacks.
func (p interpreter) missing() []string {
	var out []string
	for _, name := range []string{"python", "python3"} {
		if _, err := os.Stat(filepath.Join(p.bin(), name)); err != nil {
			out = append(out, name)
		}
	}
	return out
}

// within tells whether p is dir or below it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}
