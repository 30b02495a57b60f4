package pipeline_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/internal/pipelinetest"
)

// The configuration and command line in the run directory contain no secret, and a secret cannot
// be the name of a run.
func TestRecordedConfigurationHasNoSecrets(t *testing.T) {
	t.Parallel()
	key := "ghp_" + strings.Repeat("a1B2", 9)
	h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
	h.Config.Resolved = []byte(`{"agent":{"with":{"note":"` + key + `"}},"s3":{"endpoint":"http://me:q7Zk1xVb93LmPw@host"}}`)
	h.Config.Command = []string{"tracesmith", "run", "-p", "agent.with.note=" + key}
	h.MustRun(t)
	for _, file := range []string{"run.json", "summary.json", "summary.md"} {
		b, err := os.ReadFile(filepath.Join(h.Dir, file))
		if err != nil || bytes.Contains(b, []byte(key)) || bytes.Contains(b, []byte("q7Zk1xVb93LmPw")) {
			t.Errorf("%s: %v: %s", file, err, b)
		}
	}
	if h.Config.Command[3] != "agent.with.note="+key {
		t.Error("the caller's slice was changed")
	}

	named := newHarness(filepath.Join(t.TempDir(), "run"), 1)
	named.Config.RunID = key
	if _, err := named.Run(t.Context()); err == nil || pipelinetest.ExitCode(t, err) != 2 || strings.Contains(err.Error(), key) {
		t.Errorf("a key as run ID: %v", err)
	}
	if _, err := os.Stat(named.Dir); !os.IsNotExist(err) {
		t.Errorf("the refused run left something behind: %v", err)
	}
}
