package provenance

import (
	"cmp"
	"errors"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/provenance/overlap"
	"github.com/tracesmith/tracesmith/schemas"
)

// TaskPrintsSchema is the schema of a line about a task in a file of prints.
const TaskPrintsSchema = "tracesmith.hashes.task/1"

// TaskPrints identifies a task of a benchmark. It contains none of the task's text.
type TaskPrints struct {
	Schema     string        `json:"schema"`
	Benchmark  string        `json:"benchmark"`
	Repo       string        `json:"repo"` // as Upstream names it
	Instance   string        `json:"instance_id"`
	BaseCommit string        `json:"base_commit,omitempty"`
	Statement  overlap.Print `json:"statement"` // of the instructions
	Patch      overlap.Print `json:"patch"`     // of what the reference fix changes (overlap.Changed)
}

// PrintsOf makes the prints of a task.
func PrintsOf(t schemas.Task, benchmark string) TaskPrints {
	commit := t.BaseCommit
	if commit == "" && t.Origin != nil {
		commit = t.Origin.BaseCommit
	}
	return TaskPrints{
		Schema: TaskPrintsSchema, Benchmark: benchmark, Repo: Upstream(t), Instance: t.InstanceID, BaseCommit: commit,
		Statement: overlap.PrintOf(t.Instructions), Patch: overlap.PrintOf(overlap.Changed(t.GoldPatch)),
	}
}

// BenchmarkOf names the benchmark of a task: the one of its source, or the one that has its
// repository; "" if none is known.
func BenchmarkOf(t schemas.Task) string { return cmp.Or(sources[t.Source], Benchmark(Upstream(t))) }

// taskName is the key of a task in a library.
type taskName struct{ benchmark, instance string }

func (n taskName) compare(o taskName) int {
	return cmp.Or(strings.Compare(n.benchmark, o.benchmark), strings.Compare(n.instance, o.instance))
}

func parseTaskPrints(line []byte) (p TaskPrints, err error) {
	if err := strictly(line, &p); err != nil {
		return p, err
	}
	if p.Repo == "" || p.Benchmark == "" || p.Instance == "" {
		return p, errors.New("it names no repo, no benchmark or no instance_id")
	}
	return p, nil
}
