package trace

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/schemas"
)

//go:embed probe.py
var program string

// Limits of a probe.
const (
	maxOutput = 64 << 20 // bytes that it may write in one run
	maxEvents = 2_000_000
)

// ErrNoTrace is returned if the tests ran but the probe recorded nothing.
var ErrNoTrace = errors.New("nothing was traced")

// Runner runs the tests of a task on a tree with a patch. *verify.Verifier implements it.
type Runner interface {
	Observe(ctx context.Context, t schemas.Task, tree env.Tree, patch []byte, how verify.Variant) (verify.Run, error)
}

// probe is a probe with a configuration, to which it adds the limits.
func probe(order map[string]any) *verify.Probe {
	order["limit"], order["events"] = maxOutput-64, maxEvents
	return &verify.Probe{Source: program, Config: order, Limit: maxOutput}
}

// watch runs the tests under the probe.
func watch(ctx context.Context, r Runner, t schemas.Task, tree env.Tree, patch []byte, how verify.Variant) (verify.Run, error) {
	run, err := r.Observe(ctx, t, tree, patch, how)
	if err != nil {
		return run, fmt.Errorf("tracing: %w", err)
	}
	return run, nil
}

// record is one line of the probe's output: a kind and its items.
type record struct {
	kind string
	rest []json.RawMessage
}

// into decodes the first items into targets. ok is false if there are too few items or one does not
// match the type of its target.
func (r record) into(targets ...any) (ok bool) {
	if len(r.rest) < len(targets) {
		return false
	}
	for i, target := range targets {
		if json.Unmarshal(r.rest[i], target) != nil {
			return false
		}
	}
	return true
}

// tuple decodes a JSON array with at least as many items as there are targets.
func tuple(raw []byte, targets ...any) error {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return err
	}
	if !(record{rest: items}).into(targets...) {
		return errors.New("not what a probe writes")
	}
	return nil
}

// records reads the output of a probe. It skips lines that are not records.
func records(raw []byte, each func(record)) {
	for line := range bytes.Lines(raw) {
		var items []json.RawMessage
		if json.Unmarshal(line, &items) != nil || len(items) == 0 {
			continue
		}
		var r record
		if json.Unmarshal(items[0], &r.kind) == nil {
			r.rest = items[1:]
			each(r)
		}
	}
}
