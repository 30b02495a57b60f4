package provenance

import (
	"cmp"
	"errors"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/provenance/overlap"
	"github.com/tracesmith/tracesmith/schemas"
)

// TaskHashesSchema is the schema of a line about a task in a file of hashes.
const TaskHashesSchema = "tracesmith.hashes.task/1"

// TaskHashes identifies a task of a benchmark without containing its texts.
type TaskHashes struct {
	Schema     string             `json:"schema"`
	Benchmark  string             `json:"benchmark"`
	Repo       string             `json:"repo"` // as Upstream returns it
	Instance   string             `json:"instance_id"`
	BaseCommit string             `json:"base_commit,omitempty"`
	Statement  overlap.TextHashes `json:"statement"` // of the instructions
	Patch      overlap.TextHashes `json:"patch"`     // of the lines that the gold patch changes (overlap.Changed)
}

// TaskHashesOf returns the hashes of a task.
func TaskHashesOf(t schemas.Task, benchmark string) TaskHashes {
	commit := t.BaseCommit
	if commit == "" && t.Origin != nil {
		commit = t.Origin.BaseCommit
	}
	return TaskHashes{
		Schema: TaskHashesSchema, Benchmark: benchmark, Repo: Upstream(t), Instance: t.InstanceID, BaseCommit: commit,
		Statement: overlap.TextHashesOf(t.Instructions), Patch: overlap.TextHashesOf(overlap.Changed(t.GoldPatch)),
	}
}

// BenchmarkOf returns the benchmark of a task: that of its source, or the one that takes tasks from its repository. It
// returns "" if there is none.
func BenchmarkOf(t schemas.Task) string {
	return cmp.Or(benchmarkOfSource[t.Source], Benchmark(Upstream(t)))
}

// taskName identifies a task in a Library.
type taskName struct{ benchmark, instance string }

func (n taskName) compare(o taskName) int {
	return cmp.Or(strings.Compare(n.benchmark, o.benchmark), strings.Compare(n.instance, o.instance))
}

func parseTaskHashes(line []byte) (p TaskHashes, err error) {
	if err := decodeStrict(line, &p); err != nil {
		return p, err
	}
	if p.Repo == "" || p.Benchmark == "" || p.Instance == "" {
		return p, errors.New("it lacks a repo, a benchmark or an instance_id")
	}
	return p, nil
}
