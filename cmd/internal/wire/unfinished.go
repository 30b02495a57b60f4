package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/llms/tape"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
)

// DeadLetter is a job that ended without an episode.
type DeadLetter struct {
	schemas.DeadLetterRow
	Instance string // instance id of its task; "" if unknown
}

// DeadLetters returns the jobs of the run, or of the published runs, that ended without an
// episode.
func (d *Data) DeadLetters(ctx context.Context) ([]DeadLetter, error) {
	var rows []schemas.DeadLetterRow
	var err error
	instances := map[string]string{}
	if d.Dataset != nil {
		rows, err = d.Dataset.DeadLetters(ctx)
	} else {
		var last observe.Report
		if last, err = lastReport(d.runDir()); err != nil {
			return nil, err
		}
		for _, e := range last.Episodes {
			instances[e.ID] = e.Instance
		}
		for _, m := range last.Missing {
			instances[m.ID] = m.Instance
		}
		store, oerr := OpenStore(ctx, d.runDir(), configs.S3{})
		if oerr != nil {
			return nil, oerr
		}
		rows, err = publish.DeadLetters(ctx, store, redact.NewChecker(nil))
	}
	var out []DeadLetter
	for _, row := range rows {
		out = append(out, DeadLetter{row, instances[row.UnitKey]})
	}
	return out, err
}

// DeadLettersPath returns the path of the file that lists the jobs that DeadLetters returns.
func (d *Data) DeadLettersPath() string {
	if d.Dataset != nil {
		root, _ := publish.VersionOf(d.Place)
		return strings.TrimRight(root, "/") + "/" + d.Dataset.DeadLettersKey()
	}
	return filepath.Join(d.runDir(), "dead-letters.jsonl")
}

func (d *Data) runDir() string { return strings.TrimPrefix(d.Place, "file://") }

// lastReport returns the summary of a run's last invocation, or the zero value if no
// invocation has ended.
func lastReport(dir string) (observe.Report, error) {
	var last observe.Report
	body, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return last, nil
	}
	if err == nil {
		err = json.Unmarshal(body, &last)
	}
	if err != nil {
		return last, fmt.Errorf("reading the last summary of %s: %w", dir, err)
	}
	return last, nil
}

// Unfinished is an episode that a run has started and not staged.
type Unfinished struct {
	ID, Instance string // Instance is "" if unknown
	Dead         bool   // its job ended without an episode
}

// Unfinished returns the unfinished episodes of a run directory, sorted by id: those
// that have called a model or that the last summary names. A dataset has none.
func (d *Data) Unfinished(ctx context.Context) ([]Unfinished, error) {
	if d.Dataset != nil {
		return nil, nil
	}
	dir := d.runDir()
	instances := map[string]string{}
	tapes, err := filepath.Glob(tape.Path(escapeGlob.Replace(dir), "*"))
	if err != nil {
		return nil, fmt.Errorf("listing the records of model calls: %w", err)
	}
	for _, name := range tapes {
		instances[strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))] = ""
	}
	last, err := lastReport(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range last.Episodes {
		instances[e.ID] = e.Instance
	}
	for _, m := range last.Missing {
		instances[m.ID] = m.Instance
	}
	for o, err := range d.store.List(ctx, "staging/") {
		if err != nil {
			return nil, fmt.Errorf("listing staged episodes: %w", err)
		}
		id, _, _ := strings.Cut(path.Base(o.Key), ".")
		delete(instances, id)
	}
	letters, err := d.DeadLetters(ctx)
	if err != nil {
		return nil, err
	}
	dead := map[string]bool{}
	for _, row := range letters {
		dead[row.UnitKey] = true
	}
	var out []Unfinished
	for _, id := range slices.Sorted(maps.Keys(instances)) {
		out = append(out, Unfinished{id, instances[id], dead[id]})
	}
	return out, nil
}

// escapeGlob escapes the special characters of glob patterns in a path.
var escapeGlob = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)
