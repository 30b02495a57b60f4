package verify

import (
	"bytes"
	"cmp"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/schemas"
)

// markedHooks writes compiled hooks that consist of a probe, which says that it runs.
const markedHooks = `import marshal, sys
code = compile("print('from compiled code')", "<frozen tracesmith_probe>", "exec")
sys.stdout.buffer.write(sys.version.encode() + b"\0" + marshal.dumps({"tracesmith_probe": code}))`

// An interpreter runs compiled hooks only if it has the version that compiled them, and its own hooks work.
// TRACESMITH_TEST_PYTHONS names the interpreters (see scripts/pythons.sh).
func TestEachPythonRunsItsOwnCompiledHooks(t *testing.T) {
	v, p := verifier(t), honest(t)
	for _, python := range filepath.SplitList(cmp.Or(suite.Pythons.Value(t), "/usr/bin/python3")) {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			run := func(compiled []byte) string {
				sb := envtest.Sandbox(t, "bubblewrap", env.SandboxSpec{Workdir: schemas.DefaultWorkdir, Python: python})
				c := newChannel(env.TempDirOf(sb))
				archive, err := c.hooksArchive(schemas.DefaultWorkdir, Variant{}, compiled)
				if err != nil {
					t.Fatal(err)
				}
				r, err := sb.Run(t.Context(), env.Command{Args: c.args(`python3 -c 'print("done")'`), Sealed: archive, Keys: &c.keys})
				if err != nil || !strings.HasSuffix(string(r.Output), "done\n") {
					t.Fatalf("%q, %v", r.Output, err)
				}
				return string(r.Output)
			}
			marked, err := exec.Command(python, "-c", markedHooks).Output()
			if err != nil {
				t.Fatal(err)
			}
			if out := run(marked); out != "from compiled code\ndone\n" {
				t.Errorf("with hooks compiled by the same interpreter: %q", out)
			}
			if out := run(bytes.Replace(marked, []byte("3."), []byte("2."), 1)); out != "done\n" {
				t.Errorf("with hooks compiled by another interpreter: %q", out)
			}

			compiled, err := compileHooks(t.Context(), python)
			version, _, _ := bytes.Cut(marked, []byte{0})
			if err != nil || !bytes.HasPrefix(compiled, append(version, 0)) {
				t.Errorf("the hooks are not compiled by %s: %.80q, %v", python, compiled, err)
			}
			cfg := v.cfg
			cfg.Spec.Python = python
			got, err := New(cfg).Observe(t.Context(), task(p, unittestEntry, unittestSpec), p, nil, Variant{})
			if err != nil || got.Finding != "" || got.Passed() != 2 {
				t.Errorf("%d tests passed, %q, %v\n%s", got.Passed(), got.Finding, err, got.Output)
			}
		})
	}
}

// The sandbox says which interpreter of the host it runs, and the hooks are compiled only once.
func TestHooksAreCompiledOncePerInterpreter(t *testing.T) {
	sb := startSandbox(t, verifier(t), fixture(t))
	first, err := compileHooks(t.Context(), env.HostPythonOf(sb))
	if err != nil || len(first) == 0 {
		t.Fatalf("%d bytes, %v", len(first), err)
	}
	again, err := compileHooks(t.Context(), env.HostPythonOf(sb))
	if err != nil || &first[0] != &again[0] {
		t.Errorf("compiled again: %v", err)
	}
}
