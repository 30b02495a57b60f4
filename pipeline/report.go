package pipeline

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
)

// Finish writes the report of the invocation, which ended with err, and closes the run directory.
// The returned error includes err.
func (b *Batch) Finish(err error) (observe.Report, error) {
	rep := b.report(err)
	if b.status != nil {
		b.status.Close(rep.Verdict == observe.Complete, slices.Collect(maps.Keys(b.dead)))
	}
	err = errors.Join(err, b.writeFiles(rep))
	b.Deps.Observer.RunFinished(rep)
	return rep, errors.Join(err, b.dir.Close())
}

// writeFiles writes the report and the dead letters. It removes the engine's files of a complete
// run, which no longer needs them.
func (b *Batch) writeFiles(rep observe.Report) error {
	body, err := rep.JSON()
	if err != nil {
		return err
	}
	err = errors.Join(
		b.dir.Replace("summary.json", body),
		b.dir.Replace("summary.md", rep.Markdown()),
	)
	if b.Engine != nil || rep.Verdict == observe.Complete {
		err = errors.Join(err, b.writeDeadLetters())
	}
	if rep.Verdict == observe.Complete && b.Selected() >= b.dir.Jobs() { // a larger selection may have unfinished jobs
		err = errors.Join(err, b.dir.Remove("engine"))
	}
	return err
}

// writeDeadLetters writes dead-letters.jsonl, one schemas.DeadLetterRow per line, in the order of
// the plan.
func (b *Batch) writeDeadLetters() error {
	const name = "dead-letters.jsonl"
	if len(b.dead) == 0 {
		return b.dir.Remove(name)
	}
	var out []byte
	for _, j := range b.plan.jobs {
		e, ok := b.dead[j.EpisodeID]
		if !ok {
			continue
		}
		state := "failed"
		if e.Class == classSecret {
			state = "filtered" // package publish uses the same word
		}
		line, err := json.Marshal(schemas.DeadLetterRow{
			RunID: b.RunID, UnitKey: e.ID, Stage: cmp.Or(e.Stage, stageRollout), State: state, ErrorClass: &e.Class, ErrorMessage: new(b.Config.public(e.Cause)),
			Attempts: int32(e.Delivery), FirstAt: &e.FirstAt, LastAt: &e.LastAt, CostUSD: b.Ledger.Paid(e.ID), InputRef: &j.TaskID, Retryable: new(true),
		})
		if err != nil {
			return fmt.Errorf("encoding a dead letter: %w", err)
		}
		out = append(append(out, line...), '\n')
	}
	return b.dir.Replace(name, out)
}

// report returns the report of this invocation, which ends with err.
func (b *Batch) report(err error) observe.Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	rep := observe.Report{
		RunID: b.RunID, RunDir: b.Config.RunDir, Log: b.dir.LogPath(), Command: b.Config.Command, Started: b.started.UTC(), Ended: b.Deps.Clock().UTC(),
		Episodes: slices.Collect(maps.Values(b.episodes)), Friction: b.friction, Data: observe.Data{Staging: b.Deps.Staging.URI()},
	}
	rep.Calls, rep.Effort.SpentNowUSD = b.Ledger.Totals()
	rep.Ledger.Unselected = b.unselected
	for _, j := range b.plan.jobs {
		if _, ok := b.episodes[j.EpisodeID]; ok {
			continue
		}
		reason := "not finished"
		if e, ok := b.dead[j.EpisodeID]; ok {
			reason = "given up: " + e.Class + ": " + b.Config.public(e.Cause)
		} else if _, todo := b.ToDo[j.EpisodeID]; !todo {
			reason = "staged, not read"
		}
		rep.Missing = append(rep.Missing, observe.Missing{ID: j.EpisodeID, Instance: j.Instance, Attempt: j.Attempt, Reason: reason})
	}
	if f, ok := errors.AsType[fatal](err); ok {
		rep.Verdict, rep.ExitCode, rep.Error, rep.Hint = observe.Stopped, f.ExitCode(), b.Config.Clean(f.Error()), f.Hint()
		if budget.Exhausted(err) {
			rep.FlagToRaise = budget.RunFlag
		}
		switch f.ExitCode() {
		case 5:
			rep.Verdict = observe.OverBudget
		case 129, 130, 143: // SIGHUP, SIGINT, SIGTERM
			rep.Verdict = observe.Interrupted
		}
	} else if err != nil {
		rep.Verdict, rep.ExitCode, rep.Error = observe.Stopped, 1, b.Config.Clean(err.Error())
	}
	rep.Summarise()
	return rep
}
