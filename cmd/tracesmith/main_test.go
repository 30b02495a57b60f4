package main

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tracesmith/tracesmith/cmd/tracesmith/internal/cli"
	"github.com/tracesmith/tracesmith/env/guest"
)

// The test binary is three programs: a guest where a sandbox starts it as one,
// tracesmith itself, and a tracesmith that dies on the way.
func TestMain(m *testing.M) {
	guest.MainIfGuest()
	testscript.Main(m, map[string]func(){
		"tracesmith":       main,
		"tracesmith-crash": crash,
	})
}

// crash is tracesmith-crash POINT N ARGS...: tracesmith ARGS, killed with no
// chance to clean up when it comes to the boundary POINT for the N-th time.
func crash() {
	point, args := os.Args[1], os.Args[3:]
	nth, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	state, stop := cli.OSState()
	defer stop()
	var met atomic.Int32
	state.Args = args
	state.Crash = func(at string) {
		if at == point && int(met.Add(1)) == nth {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	os.Exit(cli.Main(context.Background(), state)) //nolint:gocritic // nothing is left to stop
}

// TestScripts runs each testdata/script/*.txtar on real sandboxes.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PYTHON", "/usr/bin/python3")
			e.Setenv("TERM", "dumb")
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
			"secretfree": secretFree,
		},
		Condition: condition,
	})
}
