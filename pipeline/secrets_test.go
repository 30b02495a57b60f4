package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
)

// The error of another program may contain a key. The key appears neither in the progress of a
// run, nor in its report, nor in the dead letters.
func TestErrorsAreReportedWithoutSecrets(t *testing.T) {
	t.Parallel()
	key, value := "ghp_"+strings.Repeat("a1B2", 9), "counting-house-7"
	message := "no account for " + key + " and " + value
	for name, c := range map[string]struct {
		inject func(h *harness)
		code   int
	}{
		"given up": {func(h *harness) {
			h.OnStep = func(context.Context, schemas.Job, schemas.ToolCall) error { return errors.New(message) }
		}, 3},
		"stopped": {func(h *harness) {
			h.OnAsk = func(context.Context, schemas.Job, int) error {
				return &llms.Error{Class: llms.ClassAuth, Message: message}
			}
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
			h.Config.Normalise.Secrets = redact.NewKnown([]string{value})
			c.inject(h)
			var shown bytes.Buffer
			h.ChangeDeps = func(d *pipeline.Deps) { d.Observer = observe.NewPlain(&shown) }
			rep, _ := h.Run(t.Context())
			if rep.ExitCode != c.code {
				t.Errorf("exit code %d: %s", rep.ExitCode, rep.Error)
			}
			texts := map[string]string{"progress": shown.String(), "error": rep.Error}
			for _, file := range []string{"summary.json", "summary.md", "dead-letters.jsonl", "status.json"} {
				if b, err := os.ReadFile(filepath.Join(h.Dir, file)); err == nil {
					texts[file] = string(b)
				}
			}
			found := false
			for place, text := range texts {
				found = found || strings.Contains(text, "no account for [REDACTED:github_token:1] and [REDACTED:known:1]")
				if strings.Contains(text, key) || strings.Contains(text, value) {
					t.Errorf("%s: %s", place, text)
				}
			}
			if !found {
				t.Errorf("the cause appears nowhere: %v", texts)
			}
		})
	}
}
