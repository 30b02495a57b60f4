package verify

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"os/exec"
	"path"
	"sync"
	"time"
)

//go:embed python/*.py
var hooks embed.FS

// hookSources returns the source of each module of the hooks by the name of its file.
func hookSources() (map[string][]byte, error) {
	list, err := hooks.ReadDir("python")
	if err != nil {
		return nil, fmt.Errorf("reading embedded hooks: %w", err)
	}
	out := map[string][]byte{}
	for _, f := range list {
		if out[f.Name()], err = hooks.ReadFile(path.Join("python", f.Name())); err != nil {
			return nil, fmt.Errorf("reading embedded hooks: %w", err)
		}
	}
	return out, nil
}

// compileScript writes the version of the interpreter and the compiled hooks, for python/sitecustomize.py.
const compileScript = `import base64, json, marshal, sys
sources = json.loads(sys.stdin.buffer.read().decode())
codes = {n[:-3]: compile(base64.b64decode(s), "<frozen %s>" % n[:-3], "exec") for n, s in sources.items()}
sys.stdout.buffer.write(sys.version.encode() + b"\0" + marshal.dumps(codes))`

var compiledHooks = struct {
	mu sync.Mutex
	by map[string][]byte // path of the interpreter -> compiled hooks
}{by: map[string][]byte{}}

// compileHooks compiles the hooks with an interpreter of the host, once per interpreter, because
// compiling takes longer than many tests. It runs no code of a sandbox, which could change the result, and
// none of the interpreter's site directories. Without an interpreter, it returns nil: then the sandbox's
// interpreter compiles the hooks itself.
func compileHooks(ctx context.Context, python string) ([]byte, error) {
	if python == "" {
		return nil, nil
	}
	compiledHooks.mu.Lock()
	defer compiledHooks.mu.Unlock()
	if out, ok := compiledHooks.by[python]; ok {
		return out, nil
	}
	sources, err := hookSources()
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(sources)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-I", "-S", "-c", compileScript)
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("compiling the test hooks with %s: %w", python, err)
	}
	compiledHooks.by[python] = out
	return out, nil
}
