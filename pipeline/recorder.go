package pipeline

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

// Kinds of entries in a step log.
const (
	kindIntent  = "intent"
	kindReply   = "reply"
	kindStep    = "step"
	kindRollout = "rollout" // the episode without its steps: the agent is through
	kindVerdict = "verdict"
	kindSettled = "settled" // the delivery ended in order: nothing is in flight
)

// recorder is an agents.Recorder over a step log, and the memory of what
// earlier deliveries of the job achieved.
type recorder struct {
	run *run
	job schemas.Job
	log *engine.StepLog

	steps   []schemas.Step
	pending *schemas.Reply
	rollout *rollout
	verdict *schemas.Verdict
}

// rollout is what is known when the agent is through.
type rollout struct {
	Episode  schemas.Episode `json:"episode"`  // without Steps
	Replayed int             `json:"replayed"` // how many of the first steps were replayed
}

type replyEntry struct {
	Turn  int           `json:"turn"`
	Reply schemas.Reply `json:"reply"`
}

// openRecorder reads a job's log back. A call that was announced and has no
// reply was in flight when its process died.
func (r *run) openRecorder(ctx context.Context, job schemas.Job) (*recorder, error) {
	log, entries, err := r.engine.OpenLog(ctx, job.EpisodeID)
	if err != nil {
		return nil, fmt.Errorf("opening the step log: %w", err)
	}
	rec := &recorder{run: r, job: job, log: log}
	pendingTurn, lost, paid, dearest := -1, 0, 0.0, 0.0
	open := false // a call was announced and has not been answered
	for _, e := range entries {
		var err error
		switch e.Kind {
		case kindIntent:
			if open {
				lost++
			}
			open = true
		case kindSettled:
			open = false
		case kindReply:
			var re replyEntry
			if err = json.Unmarshal(e.Data, &re); err == nil {
				rec.pending, pendingTurn = &re.Reply, re.Turn
				open = false
				if re.Reply.CostUSD != nil {
					paid += *re.Reply.CostUSD
					dearest = max(dearest, *re.Reply.CostUSD)
				}
			}
		case kindStep:
			var s schemas.Step
			if err = json.Unmarshal(e.Data, &s); err == nil {
				rec.steps = append(rec.steps, s)
				if s.Turn == pendingTurn {
					rec.pending = nil
				}
			}
		case kindRollout:
			rec.rollout = &rollout{}
			err = json.Unmarshal(e.Data, rec.rollout)
		case kindVerdict:
			rec.verdict = &schemas.Verdict{}
			err = json.Unmarshal(e.Data, rec.verdict)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the step log: entry %s: %w", e.Kind, err)
		}
	}
	if open {
		lost++
	}
	r.paidBefore(job.EpisodeID, paid, lost, dearest)
	return rec, nil
}

// Replayed implements agents.Recorder.
func (r *recorder) Replayed() ([]schemas.Step, *schemas.Reply) { return r.steps, r.pending }

// Intent implements agents.Recorder. It is where the run's budget is enforced:
// no call is made that is not announced.
func (r *recorder) Intent(ctx context.Context, turn int) error {
	if r.run.overBudget() {
		return errBudget
	}
	return r.append(ctx, kindIntent, turn)
}

// Reply implements agents.Recorder.
func (r *recorder) Reply(ctx context.Context, turn int, reply schemas.Reply) error {
	if err := r.append(ctx, kindReply, replyEntry{turn, reply}); err != nil {
		return err
	}
	r.run.paid(reply)
	r.run.deps.Crash("recorded-reply")
	return nil
}

// Step implements agents.Recorder.
func (r *recorder) Step(ctx context.Context, s schemas.Step) error {
	if err := r.append(ctx, kindStep, s); err != nil {
		return err
	}
	r.run.deps.Observer.Step(r.job, s)
	r.run.deps.Crash("recorded-step")
	return nil
}

func (r *recorder) append(ctx context.Context, kind string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding step log entry %s: %w", kind, err)
	}
	return r.log.Append(ctx, kind, body)
}
