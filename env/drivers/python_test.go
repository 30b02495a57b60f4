package drivers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/envtest"
)

func TestPythonOfAVirtualEnvironment(t *testing.T) {
	venv := filepath.Join(t.TempDir(), "venv")
	if out, err := exec.Command("/usr/bin/python3", "-m", "venv", "--without-pip", venv).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	site, err := filepath.Glob(filepath.Join(venv, "lib/python3*/site-packages"))
	if err != nil || len(site) != 1 {
		t.Fatal(site, err)
	}
	if err := os.WriteFile(filepath.Join(site[0], "only_here.py"), []byte("here = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"bubblewrap", "local"} {
		s, err := envtest.Driver(t, kind).Start(t.Context(), env.SandboxSpec{Python: filepath.Join(venv, "bin/python")})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"python", "python3"} {
			r, err := s.Run(t.Context(), env.Command{Args: []string{name, "-c", "import only_here, sys; print(sys.prefix)"}})
			if err != nil || string(r.Output) != venv+"\n" {
				t.Errorf("%s %s: %q, %v", kind, name, r.Output, err)
			}
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
