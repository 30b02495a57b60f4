package pipeline

import (
	"context"
	"errors"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/audit"
	"github.com/tracesmith/tracesmith/schemas"
)

// compare returns a function that compares the values of an episode with the fixed program, or nil if Deps.Pairs is nil or the task
// has no fix. A trace that fails leaves columns null and never fails the episode, whose verdict does not depend on it.
func (j *jobRun) compare(ctx context.Context) func(*audit.Record) *audit.Evidence {
	if j.batch.Deps.Pairs == nil || j.task.GoldPatch == "" {
		return nil
	}
	return func(r *audit.Record) *audit.Evidence {
		evidence, err := j.evidence(ctx, r)
		if err != nil {
			j.batch.Deps.Log.Warn("comparing values with the fixed program; columns that need it are null",
				"task", j.task.InstanceID, "episode", j.job.EpisodeID, "error", err)
			return nil
		}
		return evidence
	}
}

var errNoFailingTest = errors.New("the task lists no failing test")

func (j *jobRun) evidence(ctx context.Context, r *audit.Record) (*audit.Evidence, error) {
	spec, err := j.tests(ctx)
	if err != nil {
		return nil, err
	}
	test := debuggedTest(spec.FailToPass, r)
	if test == "" {
		return nil, errNoFailingTest
	}
	tree, err := j.batch.Deps.Source.Tree(ctx, j.task.InstanceID)
	if err != nil {
		return nil, err
	}
	pair, err := j.batch.Deps.Pairs.Trace(ctx, j.task, tree, test)
	if err != nil {
		return nil, err
	}
	return audit.Compare(r, pair, func(fixed bool, queries []schemas.TraceQuery) ([]schemas.TraceReply, error) {
		return j.batch.Deps.Pairs.Evaluate(ctx, j.task, tree, fixed, test, queries)
	})
}

// debuggedTest returns the failing test that most stops of the debugger belong to, as far as commands name it, or the first one.
func debuggedTest(failing []string, r *audit.Record) string {
	best, most := "", -1
	for _, test := range failing {
		n := 0
		for _, s := range r.Stops {
			if strings.Contains(s.Command, test) {
				n++
			}
		}
		if n > most {
			best, most = test, n
		}
	}
	return best
}
