package pipeline

// The end of an invocation: the report, its files, and the dead letters.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
)

// leave writes the report and the dead letters. A run in which nothing is left
// to do needs its private working data no more.
func (r *run) leave(rep observe.Report) error {
	body, err := rep.JSON()
	if err != nil {
		return err
	}
	err = errors.Join(
		r.dir.Replace("summary.json", body),
		r.dir.Replace("summary.md", rep.Markdown()),
	)
	if r.engine != nil || rep.Verdict == observe.Complete {
		err = errors.Join(err, r.writeDeadLetters())
	}
	if rep.Verdict == observe.Complete {
		err = errors.Join(err, r.dir.Remove("engine"))
	}
	return err
}

// writeDeadLetters keeps dead-letters.jsonl: a schemas.DeadLetterRow a line, in
// the order of the plan.
func (r *run) writeDeadLetters() error {
	const name = "dead-letters.jsonl"
	if len(r.dead) == 0 {
		return r.dir.Remove(name)
	}
	var out []byte
	for _, j := range r.plan.jobs {
		e, ok := r.dead[j.EpisodeID]
		if !ok {
			continue
		}
		state := "failed"
		if e.Class == classSecret {
			state = "filtered" // as publishing calls what it holds back
		}
		line, err := json.Marshal(schemas.DeadLetterRow{
			RunID: r.runID, UnitKey: e.ID, Stage: cmp.Or(e.Stage, stageRollout), State: state, ErrorClass: &e.Class, ErrorMessage: new(r.public(e.Cause)),
			Attempts: int32(e.Delivery), FirstAt: &e.FirstAt, LastAt: &e.LastAt, CostUSD: r.ledger.Paid(e.ID), InputRef: &j.TaskID, Retryable: new(true),
		})
		if err != nil {
			return fmt.Errorf("encoding a dead letter: %w", err)
		}
		out = append(append(out, line...), '\n')
	}
	return r.dir.Replace(name, out)
}

// report builds the report of this invocation.
func (r *run) report(started time.Time, err error) observe.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	rep := observe.Report{
		RunID: r.runID, RunDir: r.cfg.RunDir, Command: r.cfg.Command, Started: started.UTC(), Ended: r.deps.Clock().UTC(),
		Episodes: slices.Collect(maps.Values(r.episodes)), Friction: r.friction, Data: observe.Data{Staging: r.deps.Staging.URI()},
	}
	rep.Calls, rep.Effort.SpentNowUSD = r.ledger.Totals()
	for _, j := range r.plan.jobs {
		if _, ended := r.episodes[j.EpisodeID]; ended {
			continue
		}
		reason := "not finished"
		if e, ok := r.dead[j.EpisodeID]; ok {
			reason = "given up: " + e.Class + ": " + r.public(e.Cause)
		} else if _, todo := r.todo[j.EpisodeID]; !todo {
			reason = "staged, not read"
		}
		rep.Missing = append(rep.Missing, observe.Missing{ID: j.EpisodeID, Instance: j.Instance, Attempt: j.Attempt, Reason: reason})
	}
	if f, ok := errors.AsType[fatal](err); ok {
		rep.Verdict, rep.ExitCode, rep.Error, rep.Hint = observe.Stopped, f.ExitCode(), r.cfg.clean(f.Error()), f.Hint()
		if budget.Exhausted(err) {
			rep.Raise = budget.RunFlag
		}
		switch f.ExitCode() {
		case 5:
			rep.Verdict = observe.OverBudget
		case 129, 130, 143: // SIGHUP, SIGINT, SIGTERM
			rep.Verdict = observe.Interrupted
		}
	} else if err != nil {
		rep.Verdict, rep.ExitCode, rep.Error = observe.Stopped, 1, r.cfg.clean(err.Error())
	}
	rep.Summarise()
	return rep
}
