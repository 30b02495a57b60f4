package setup

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/drivers/bubblewrap"
	_ "github.com/tracesmith/tracesmith/env/drivers/docker"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/schemas"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	os.Exit(m.Run())
}

// recordingDriver is a driver that records the specs and sandboxes of its starts.
type recordingDriver struct {
	env.Driver
	onStart func() // if not nil, called after a sandbox has started
	mu      sync.Mutex
	specs   []env.SandboxSpec
	boxes   []env.Sandbox
}

func (w *recordingDriver) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	w.mu.Lock()
	w.specs = append(w.specs, spec)
	w.mu.Unlock()
	s, err := w.Driver.Start(ctx, spec)
	if w.onStart != nil {
		w.onStart()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.boxes = append(w.boxes, s)
	return s, err
}

// tree is a repository with one file, need.txt, whose content is the string.
type tree string

func (t tree) SHA256() string { return schemas.HashBytes([]byte(t)) }

func (t tree) WriteTar(w io.Writer) error {
	out := tar.NewWriter(w)
	if err := out.WriteHeader(&tar.Header{Name: "need.txt", Mode: 0o644, Size: int64(len(t)), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	if _, err := io.WriteString(out, string(t)); err != nil {
		return err
	}
	return out.Close()
}

// fixture is a Builder with an empty cache for one test.
type fixture struct {
	*testing.T
	Builder
	driver *recordingDriver
	spec   env.SandboxSpec
}

func open(t *testing.T, kind string) *fixture {
	t.Helper()
	b := &fixture{T: t, driver: &recordingDriver{Driver: envtest.Driver(t, kind)}, spec: env.SandboxSpec{Label: t.Name(), Workdir: schemas.DefaultWorkdir}}
	b.Cache.Dir = filepath.Join(t.TempDir(), "cache")
	t.Cleanup(func() { _ = b.Close() })
	b.Placement = func(_ context.Context, tr env.Tree, w io.Writer) error { return tr.WriteTar(w) }
	return b
}

func (b *fixture) prepare(commands ...string) (env.SandboxSpec, error) {
	return b.Prepare(b.Context(), b.driver, b.spec, schemas.Task{InstanceID: "x", Setup: commands}, tree("seven"))
}

// output runs a script in a sandbox of spec and returns its output.
func (b *fixture) output(spec env.SandboxSpec, script string) string {
	b.Helper()
	sb, err := b.driver.Start(b.Context(), spec)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sb.Close(context.WithoutCancel(b.Context())) }()
	r, err := sb.Run(b.Context(), env.Command{Args: []string{"bash", "-c", script}})
	if err != nil {
		b.Fatal(err)
	}
	return string(r.Output)
}

// kept returns the names in the cache directory.
func (b *fixture) kept() []string {
	b.Helper()
	entries, err := os.ReadDir(b.Cache.Dir)
	if err != nil {
		b.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

const install = `python3 -c "import sysconfig; open(sysconfig.get_path('purelib') + '/extra.py', 'w').write('x = %r' % open('need.txt').read())"`

func testPrepare(b *fixture) {
	spec, err := b.prepare(install, "echo $RANDOM$RANDOM >$VIRTUAL_ENV/once", "echo made >made.txt")
	if err != nil {
		b.Fatal(err)
	}
	const look = `python3 -c "import extra, sys; print(extra.x, sys.prefix)"; command -v python3 pip; cat /opt/task/once; ls; touch /opt/task/new 2>/dev/null || echo read-only`
	first := b.output(spec, look)
	if lines := strings.Split(first, "\n"); len(lines) != 6 || lines[0] != "seven /opt/task" || lines[1] != "/opt/task/bin/python3" ||
		lines[2] != "/opt/task/bin/pip" || lines[4] != "read-only" {
		b.Errorf("in a sandbox: %q", first)
	}
	if got := b.output(spec, "pip --version"); !strings.HasPrefix(got, "pip ") && !strings.Contains(got, "No module named pip") {
		b.Errorf("pip: %q", got)
	}
	again, err := b.prepare(install, "echo $RANDOM$RANDOM >$VIRTUAL_ENV/once", "echo made >made.txt")
	if err != nil || b.output(again, look) != first || len(b.kept()) != 1 {
		b.Errorf("a second time: %v, cache %v", err, b.kept())
	}
	var network []bool
	for _, s := range b.driver.specs {
		network = append(network, s.Network)
	}
	if want := []bool{true, false, false, false}; !slices.Equal(network, want) {
		b.Errorf("network %v, want %v", network, want)
	}
}

func TestPrepare(t *testing.T) { testPrepare(open(t, "bubblewrap")) }

func TestDockerPrepare(t *testing.T) {
	suite.Docker.Require(t)
	b := open(t, "docker")
	b.spec.Image = "tracesmith-base:latest"
	testPrepare(b)
}

// The programs beside a recipe's interpreter stay in PATH, after the results of the setup.
func TestPrepareKeepsTheInterpreter(t *testing.T) {
	b := open(t, "bubblewrap")
	own := filepath.Join(t.TempDir(), "own")
	if out, err := exec.Command("/usr/bin/python3", "-m", "venv", "--without-pip", own).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(own+"/bin/tool", []byte("#!/bin/sh\necho tool\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.spec.Python = own + "/bin/python3"
	spec, err := b.prepare("tool")
	if err != nil {
		t.Fatal(err)
	}
	if got := b.output(spec, "command -v python3; tool"); got != "/opt/task/bin/python3\ntool\n" {
		t.Errorf("got %q", got)
	}
}

// Installed modules are compiled once, during the setup. Otherwise the compiler's warnings would fail later commands
// that treat warnings as errors.
func TestPrepareCompilesWhatIsInstalled(t *testing.T) {
	b := open(t, "bubblewrap")
	spec, err := b.prepare(`python3 -c "
import py_compile, sys, sysconfig
name = sysconfig.get_path('purelib') + '/legacy.py'
open(name, 'w').write('x = 5 if 1 is 1 else 0\n')
sys.dont_write_bytecode or py_compile.compile(name, doraise=True)"`)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.output(spec, `python3 -W error -c "import legacy; print(legacy.x)"; echo $PYTHONDONTWRITEBYTECODE`); got != "5\n1\n" {
		t.Errorf("in a sandbox: %q", got)
	}
}

// A failed setup is an error with its output, and its sandbox is removed.
func TestFailedSetupIsAnErrorWithItsOutput(t *testing.T) {
	b := open(t, "bubblewrap")
	if spec, err := b.prepare(); err != nil || len(spec.Mounts) > 0 {
		t.Errorf("without commands: %+v, %v", spec, err)
	}
	for command, want := range map[string]string{
		"echo one; echo two >&2; exit 3": "setting up x: a command ended with exit code 3: one | two: correct",
		"no-such-program":                "exit code 127",
		"kill $$":                        "exit code 143",
	} {
		if _, err := b.prepare(command, "echo on"); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", command, err)
		}
	}
	b.checkNothingLeft()
}

// The limit covers the whole setup, including the creation of its environment. The test doubles
// the limit until it is long enough for that, before the command uses it up.
func TestSetupOutOfTime(t *testing.T) {
	t.Parallel()
	b := open(t, "bubblewrap")
	for b.Timeout = 8 * time.Second; ; b.Timeout *= 2 {
		_, err := b.prepare("echo slow; sleep 600")
		if err != nil && strings.Contains(err.Error(), fmt.Sprintf("longer than %s (sandbox.setup_timeout); the end of their output: slow", b.Timeout)) {
			break
		}
		if err == nil || !strings.Contains(err.Error(), "(sandbox.setup_timeout)") || b.Timeout > time.Minute {
			t.Fatalf("slow: %v", err)
		}
	}
	b.checkNothingLeft()
}

// checkNothingLeft reports an error if a failed build left an entry or a sandbox.
func (b *fixture) checkNothingLeft() {
	b.Helper()
	if names := b.kept(); len(names) > 0 {
		b.Errorf("failed builds left %v", names)
	}
	for _, s := range b.driver.boxes {
		if _, err := s.Run(b.Context(), env.Command{Args: []string{"true"}}); !errors.Is(err, env.ErrSandboxDied) {
			b.Errorf("the sandbox of a build is still alive: %v", err)
		}
	}
}

func TestCancelledBuild(t *testing.T) {
	b := open(t, "bubblewrap")
	ctx, cancel := context.WithCancel(t.Context())
	b.driver.onStart = cancel
	_, err := b.Prepare(ctx, b.driver, b.spec, schemas.Task{InstanceID: "x", Setup: []string{"sleep 600"}}, tree(""))
	if names := b.kept(); !errors.Is(err, context.Canceled) || len(names) > 0 {
		t.Errorf("%v, left %v", err, names)
	}
	b.driver.onStart = nil
	// A later build removes the directory of a killed process.
	old, young := filepath.Join(b.Cache.Dir, building+"old"), filepath.Join(b.Cache.Dir, building+"young")
	for _, dir := range []string{old, young} {
		if err := os.MkdirAll(filepath.Join(dir, prefixDir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.prepare("true"); err != nil {
		t.Fatal(err)
	}
	if names := b.kept(); len(names) != 2 || slices.Contains(names, filepath.Base(old)) {
		t.Errorf("kept %v", names)
	}
}

func TestConcurrentBuilds(t *testing.T) {
	b := open(t, "bubblewrap")
	other := &Builder{Cache: b.Cache, Placement: b.Placement} // acts like another process
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			builder := []*Builder{&b.Builder, other}[i%2]
			if _, err := builder.Prepare(t.Context(), b.driver, b.spec, schemas.Task{Setup: []string{"true"}}, tree("")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if names := b.kept(); len(names) != 1 || len(b.driver.specs) > 2 {
		t.Errorf("kept %v after %d builds", names, len(b.driver.specs))
	}
}

// Other users who can write to the cache could run programs in every sandbox.
func TestCacheThatOthersCanAccessIsRefused(t *testing.T) {
	for name, create := range map[string]func(dir string) error{
		"open to all": func(dir string) error { return errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o777)) },
		"link":        func(dir string) error { return os.Symlink(t.TempDir(), dir) },
		"file":        func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"another's": func(dir string) error {
			if os.Geteuid() != 0 { // only root can give a directory to another user
				return os.WriteFile(dir, nil, 0o600)
			}
			return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 12345, 12345))
		},
	} {
		b := open(t, "bubblewrap")
		if err := create(b.Cache.Dir); err != nil {
			t.Fatal(err)
		}
		if _, err := b.prepare("true"); err == nil || !strings.Contains(err.Error(), "only you can enter") || len(b.driver.specs) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// When the cache exceeds its limit, the least recently used entries are removed, but none that any
// process uses.
func TestCacheStaysWithinItsLimit(t *testing.T) {
	b := open(t, "bubblewrap")
	fill := func(name string) string {
		t.Helper()
		spec, err := b.prepare("head -c 3000000 /dev/zero >$VIRTUAL_ENV/big; : " + name)
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Dir(spec.Mounts[0].Host)
	}
	entries := []string{fill("a"), fill("b"), fill("c")}
	for i, e := range entries {
		when := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(filepath.Join(e, searchFile), when, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	small := b.Cache
	small.Limit = 7 << 20
	names := func() (out []string) {
		t.Helper()
		list, err := small.Leftovers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range list {
			out = append(out, l.Name)
		}
		return out
	}
	if got := names(); len(got) != 0 {
		t.Errorf("entries in use are to be removed: %v", got)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	other := &Builder{Cache: small} // acts like another process, which uses the oldest entry
	if _, err := other.use(entries[0]); err != nil {
		t.Fatal(err)
	}
	when := time.Now().Add(-20 * time.Hour)
	if err := os.Chtimes(filepath.Join(entries[0], searchFile), when, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if got := names(); !slices.Equal(got, entries[1:2]) {
		t.Errorf("to be removed: %v, want %v", got, entries[1:2])
	}
	b.Cache = small
	fourth := fill("d") // the build makes room first
	for i, e := range append(entries, fourth) {
		if _, err := os.Stat(e); (err == nil) == (i == 1) {
			t.Errorf("entry %d: %v", i, err)
		}
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}
