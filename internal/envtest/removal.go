package envtest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

var removalChecks = []check{
	{name: "removal from outside", fn: func(t *testing.T, f *fixture) {
		CheckRemoval(t, f.Sandbox, "", func() { f.suite.Remove(t, f.label) })
	}},
}

// CheckRemoval runs a command and calls end, which must end its sandbox from outside.
// The command must then return an env.DiedError that does not blame the agent and whose
// reason contains why.
func CheckRemoval(t *testing.T, s env.Sandbox, why string, end func()) {
	t.Helper()
	term, err := s.Open(t.Context(), env.TerminalSpec{Args: []string{"sh", "-c", "while [ ! -e on ]; do sleep 0.01; done; echo on; sleep 1000"}})
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		_, err := s.Run(t.Context(), env.Command{Args: []string{"sh", "-c", "touch on; sleep 1055.55"}, Timeout: 10 * time.Minute})
		result <- err
	}()
	if p, err := term.Read(t.Context(), patience); err != nil || string(p) != "on\n" {
		t.Fatalf("%q, %v", p, err)
	}
	end()
	select {
	case err := <-result:
		died, _ := errors.AsType[*env.DiedError](err)
		if died == nil || died.CausedByCommand || !strings.Contains(died.Reason, why) {
			t.Errorf("%v (%+v), want a death because %s", err, died, why)
		}
	case <-time.After(patience):
		t.Error("the command still runs")
	}
	if _, err := s.Run(t.Context(), env.Command{Args: []string{"true"}}); !errors.Is(err, env.ErrSandboxDied) {
		t.Errorf("afterwards: %v", err)
	}
}
