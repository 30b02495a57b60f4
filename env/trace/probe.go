package trace

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/schemas"
)

//go:embed probe*.py
var probeFiles embed.FS

// Limits of a probe.
const (
	maxOutput = 64 << 20  // bytes of output in one run
	maxEvents = 2_000_000 // events of one test
)

// ErrNoTrace is returned if the tests ran but the probe recorded nothing.
var ErrNoTrace = errors.New("nothing was traced")

// Runner runs the tests of a task on a tree with a patch. *verify.Verifier implements it.
type Runner interface {
	Observe(ctx context.Context, t schemas.Task, tree env.Tree, patch []byte, variant verify.Variant) (verify.Run, error)
}

// probeSource returns the source code of a probe.
func probeSource(names ...string) string {
	var out strings.Builder
	for _, name := range names {
		text, err := probeFiles.ReadFile(name)
		if err != nil {
			panic(err) // the files are embedded
		}
		out.Write(text)
	}
	return out.String()
}

var (
	baseSource       = probeSource("probe.py", "probe_values.py", "probe_steps.py")
	experimentSource = baseSource + probeSource("probe_experiments.py")
	evaluateSource   = baseSource + probeSource("probe_evaluate.py")
)

// newProbe returns a probe with the given source and configuration, and the limits.
func newProbe(source string, config map[string]any) *verify.Probe {
	config["limit"], config["events"] = maxOutput-64, maxEvents
	return &verify.Probe{Source: source, Config: config, Limit: maxOutput}
}

func runProbe(ctx context.Context, r Runner, t schemas.Task, tree env.Tree, patch []byte, variant verify.Variant) (verify.Run, error) {
	run, err := r.Observe(ctx, t, tree, patch, variant)
	if err != nil {
		return run, fmt.Errorf("tracing: %w", err)
	}
	return run, nil
}

// record is one line of the probe's output: a kind and its items.
type record struct {
	kind  string
	items []json.RawMessage
}

// decode decodes the first items into targets. ok is false if there are too few items or one does not
// match the type of its target.
func (r record) decode(targets ...any) (ok bool) {
	if len(r.items) < len(targets) {
		return false
	}
	for i, target := range targets {
		if json.Unmarshal(r.items[i], target) != nil {
			return false
		}
	}
	return true
}

// decodeTuple decodes a JSON array that has at least as many items as there are targets.
func decodeTuple(raw []byte, targets ...any) error {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return err
	}
	if !(record{items: items}).decode(targets...) {
		return errors.New("an item is missing or has the wrong type")
	}
	return nil
}

// readRecords calls handle for each record in the output of a probe. It skips lines that are not
// records.
func readRecords(raw []byte, handle func(record)) {
	for line := range bytes.Lines(raw) {
		var items []json.RawMessage
		if json.Unmarshal(line, &items) != nil || len(items) == 0 {
			continue
		}
		var r record
		if json.Unmarshal(items[0], &r.kind) == nil {
			r.items = items[1:]
			handle(r)
		}
	}
}
