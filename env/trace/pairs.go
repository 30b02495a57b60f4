package trace

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// traceVersion is the version of the code that computes paired traces. Raise it if their content changes.
const traceVersion = 7

// Pairs makes paired traces and keeps them in a directory, one file per task and test. It is safe
// for concurrent use, also by several processes.
type Pairs struct {
	Runner Runner
	Dir    string // for the files, which are privileged; "" = none are kept
}

// Trace returns Trace(...) for a task whose gold patch fixes the tree. A trace is made again if the task, the
// tree, the test or the code that makes traces has changed.
func (p Pairs) Trace(ctx context.Context, t schemas.Task, tree env.Tree, test string) (schemas.PairedTrace, error) {
	path := filepath.Join(p.Dir, pairName(t, tree, test))
	var out schemas.PairedTrace
	if p.Dir != "" {
		raw, err := os.ReadFile(path)
		if err == nil && json.Unmarshal(raw, &out) == nil {
			return out, nil
		}
	}
	out, err := Trace(ctx, p.Runner, t, tree, nil, []byte(t.GoldPatch), test)
	if err != nil || p.Dir == "" {
		return out, err
	}
	if err := writeFile(path, out); err != nil {
		return out, fmt.Errorf("keeping a paired trace: %w", err)
	}
	return out, nil
}

// pairName returns the name of the file of a paired trace.
func pairName(t schemas.Task, tree env.Tree, test string) string {
	id := schemas.Hash([]any{traceVersion, experimentSource, t.ComputeID(), tree.SHA256(), test})
	return "pair-" + id[:32] + ".json"
}

// writeFile writes a value as JSON, so that other processes see the whole file or none.
func writeFile(path string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".pair-*")
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Evaluate returns Evaluate(...) on the tree, or on the tree with the task's gold patch.
func (p Pairs) Evaluate(ctx context.Context, t schemas.Task, tree env.Tree, fixed bool, test string, queries []schemas.TraceQuery) ([]schemas.TraceReply, error) {
	var patch []byte
	if fixed {
		patch = []byte(t.GoldPatch)
	}
	return Evaluate(ctx, p.Runner, t, tree, patch, test, queries)
}
