package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tracesmith/tracesmith/cmd/internal/cli"
	"github.com/tracesmith/tracesmith/cmd/internal/lab"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/internal/pipelinetest"
	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/internal/suite"
)

// TestMain makes the test binary four programs: the guest if a sandbox starts it as one,
// tracesmith, a tracesmith that is killed at a given point, and tracesmith-lab.
func TestMain(m *testing.M) {
	guest.MainIfGuest()
	if strings.HasSuffix(os.Args[0], ".test") { // under nohup, the programs would inherit an ignored SIGHUP
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	testscript.Main(m, map[string]func(){
		"tracesmith":       main,
		"tracesmith-crash": crashMain,
		"tracesmith-lab":   labMain,
	})
}

// labMain is the main function of tracesmith-lab.
func labMain() {
	state, stop := cli.OSState()
	defer stop()
	os.Exit(cli.Main(context.Background(), state, lab.Root)) //nolint:gocritic // stop is not needed at exit
}

// crashMain is the main function of tracesmith-crash POINT N ARGS.... It runs tracesmith ARGS and
// kills it with SIGKILL when it reaches the boundary POINT for the N-th time.
func crashMain() {
	point, args := os.Args[1], os.Args[3:]
	nth, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	state, stop := cli.OSState()
	defer stop()
	var reached atomic.Int32
	state.Args = args
	state.Hooks = pipelinetest.Hooks(func(at string) {
		if at == point && int(reached.Add(1)) == nth {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	os.Exit(cli.Main(context.Background(), state, cli.Tracesmith)) //nolint:gocritic // stop is not needed at exit
}

// TestScripts runs each testdata/script/*.txtar on real sandboxes.
func TestScripts(t *testing.T) {
	other := otherPython()
	schema1, err := filepath.Abs("../../schemas/testdata/1.3.0")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			skipOutsideSuite(e)
			e.Setenv("OTHER_PYTHON", other.path)
			e.Setenv("OTHER_PYTHON_VERSION", other.version)
			e.Setenv("PYTHON", "/usr/bin/python3")
			e.Setenv("SCHEMA_1", schema1)
			e.Setenv("TERM", "dumb")
			for _, name := range []string{"GOGC", "GORACE", "TRACESMITH_GUEST"} {
				e.Setenv(name, os.Getenv(name))
			}
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":       code,
			"refused":    refused,
			"json":       jsonOutput,
			"remember":   remember,
			"unchanged":  unchanged,
			"flip":       flip,
			"cut":        cut,
			"llm":        startLLM,
			"s3":         startS3,
			"nats":       startNATS,
			"kubernetes": startKubernetes,
			"secretfree": secretFree,
			"serve":      serve,
			"quit":       quit,
			"ask":        ask,
			"hang":       hang,
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "s3-server":
				return sinktest.HaveServer(), nil
			case "other-python":
				return other.path != "", nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
	})
}

// skipOutsideSuite skips a script whose name begins with the target of a suite, unless the suite is on.
func skipOutsideSuite(e *testscript.Env) {
	script := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
	target, _, _ := strings.Cut(script, "_")
	for _, s := range suite.WithScripts() {
		if s.Target == target && s.Get() == "" {
			e.T().Skip("make " + s.Target + " runs it (" + s.Variable + ")")
		}
	}
}

type python struct{ path, version string }

// otherPython returns an interpreter other than the system's, from PATH or pyenv, if
// there is one.
func otherPython() python {
	candidates := []string{}
	if p, err := exec.LookPath("python3"); err == nil {
		candidates = append(candidates, p)
	}
	if home, err := os.UserHomeDir(); err == nil {
		builds, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions/3.*/bin/python3"))
		candidates = append(candidates, builds...)
	}
	system := pythonVersion("/usr/bin/python3")
	for _, p := range candidates {
		if v := pythonVersion(p); v != "" && v != system {
			return python{p, v}
		}
	}
	return python{}
}

func pythonVersion(path string) string {
	out, err := exec.Command(path, "-I", "-c", "import platform; print(platform.python_version())").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
