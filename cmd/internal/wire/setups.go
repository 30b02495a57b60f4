package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/tracesmith/tracesmith/env/tasks/discover"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/pipeline/synth"
)

// SetupRecord is the result of the search for the setup of a checkout, as a JSON file keeps it.
type SetupRecord struct {
	Name       string            `json:"name"`
	TreeSHA256 string            `json:"tree_sha256"` // hash of the checkout's files
	Error      string            `json:"error,omitempty"`
	Python     string            `json:"python,omitempty"`
	Version    string            `json:"python_version,omitempty"`
	Setup      []string          `json:"setup,omitempty"`
	Entrypoint string            `json:"entrypoint,omitempty"`
	Evidence   string            `json:"evidence,omitempty"`
	Added      map[string]string `json:"added,omitempty"`   // generated files and their contents
	Tests      int               `json:"tests"`             // number of tests that pass
	Failing    int               `json:"failing,omitempty"` // number of tests that do not pass
	Suite      float64           `json:"suite_s"`           // seconds of one run of all tests
}

// ReadSetup reads the record of an earlier search. known is false if no search has finished, or if the checkout has changed since.
func ReadSetup(record string, r synth.Repo) (s SetupRecord, known bool, err error) {
	text, err := os.ReadFile(record)
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return s, false, fmt.Errorf("reading the setup of %s: %w: remove %s to find it again", r.Task.InstanceID, err, record)
	}
	return s, s.TreeSHA256 == r.Tree.SHA256(), nil
}

// FindSetup finds the setup of a checkout and writes it to the file record. If no setup works, the record says why, and
// there is no error.
func (w *Workbench) FindSetup(ctx context.Context, r synth.Repo, record string, onAttempt func(discover.Attempt)) (SetupRecord, error) {
	out := SetupRecord{Name: r.Task.InstanceID, TreeSHA256: r.Tree.SHA256()}
	s := DiscoverOptions{OnAttempt: onAttempt}
	var err error
	if r.History != "" {
		if _, s, err = w.history(ctx, NewTaskOptions{Repo: r.History}, s); err != nil {
			return out, err
		}
	}
	found, err := w.Discover(ctx, r, s)
	if out.Error = discover.Refusal(err); out.Error == "" && err != nil {
		return out, err
	}
	if err == nil {
		out.Python, out.Version, out.Setup, out.Entrypoint = found.Task.Python, found.Python.Version, found.Task.Setup, found.Task.Entrypoint
		out.Evidence, out.Tests, out.Suite, out.Added = found.Why, found.Run.Passed(), found.Run.Wall.Seconds(), map[string]string{}
		out.Failing = len(failingTests(found.Run))
	}
	for _, file := range found.Added {
		data, _, _, err := found.Tree.File(file)
		if err != nil {
			return out, err
		}
		out.Added[file] = string(data)
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(record), 0o755)
	}
	if err == nil {
		err = renameio.WriteFile(record, append(text, '\n'), 0o644)
	}
	if err != nil {
		return out, fmt.Errorf("recording the setup of %s: %w", r.Task.InstanceID, err)
	}
	return out, nil
}

// Apply returns the repository with the setup.
func (s SetupRecord) Apply(r synth.Repo) (synth.Repo, error) {
	r.Task.Python, r.Task.Setup, r.Task.Entrypoint = s.Python, s.Setup, s.Entrypoint
	var edits []workspace.FileEdit
	for file, text := range s.Added {
		edits = append(edits, workspace.FileEdit{Path: file, Data: []byte(text)})
	}
	var err error
	if len(edits) > 0 {
		r.Tree, err = r.Tree.Edit(edits)
	}
	return r, err
}
