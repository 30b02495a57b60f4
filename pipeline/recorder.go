package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

// recordTimeout bounds the log entry of a call. The entry does not depend on the context of the
// episode: a call that was paid for is recorded even if the episode is cancelled.
const recordTimeout = time.Minute

// recorder is an agents.Recorder that writes to a step log, the llms.Account of its episode, and
// the memory of what earlier deliveries of the job achieved.
type recorder struct {
	batch    *Batch
	budget   *budget.Client // nil: no other process spends from the run's budget
	job      schemas.Job
	delivery int
	log      *engine.StepLog
	tape     llms.Tape // set while the agent works
	account  *budget.Account

	steps   []schemas.Step
	pending *schemas.Reply
	rollout *rollout
	verdict *schemas.Verdict

	asking context.Context // of the policy's turn
	begun  bool            // a call is running
	worst  float64         // of that call
	call   string          // its name in the shared budget
	ended  *schemas.Payment
}

// read restores what the entries of the step log say.
func (r *recorder) read(entries []engine.LogEntry) error {
	pendingTurn := -1
	for _, e := range entries {
		var err error
		switch e.Kind {
		case kindReply:
			var re replyEntry
			if err = json.Unmarshal(e.Data, &re); err == nil {
				r.pending, pendingTurn = &re.Reply, re.Turn
			}
		case kindStep:
			var s schemas.Step
			if err = json.Unmarshal(e.Data, &s); err == nil {
				r.steps = append(r.steps, s)
				if s.Turn == pendingTurn {
					r.pending = nil
				}
			}
		case kindRollout:
			r.rollout = &rollout{}
			err = json.Unmarshal(e.Data, r.rollout)
		case kindVerdict:
			r.verdict = &schemas.Verdict{}
			err = json.Unmarshal(e.Data, r.verdict)
		}
		if err != nil {
			return fmt.Errorf("reading the step log: entry %s: %w", e.Kind, err)
		}
	}
	return nil
}

// restoreCalls makes the episode's account, and its share of the shared budget, what the step
// log says: other processes may have paid for calls.
func (r *recorder) restoreCalls(entries []engine.LogEntry) error {
	var c callCount
	for _, e := range entries {
		if err := c.add(e); err != nil {
			return err
		}
	}
	c.lose()
	r.batch.Ledger.Restore(r.account, c.calls, c.failed)
	if r.budget != nil && r.delivery > 1 {
		r.budget.Restore(r.job, r.delivery, c.calls.Spent())
	}
	return nil
}

// Replayed implements agents.Recorder.
func (r *recorder) Replayed() ([]schemas.Step, *schemas.Reply) { return r.steps, r.pending }

// Asking implements agents.Recorder. The episode's account pays for the calls of the turn. When
// no further call of the run may begin, waiting ones end and a running one continues.
func (r *recorder) Asking(ctx context.Context) (context.Context, func()) {
	r.asking = ctx
	turn, cancel := context.WithCancelCause(llms.WithTape(llms.WithAccount(ctx, r), r.tape))
	open := r.batch.Ledger.Open()
	stop := context.AfterFunc(open, func() { cancel(context.Cause(open)) })
	return turn, func() {
		stop()
		cancel(nil)
	}
}

// Begin implements llms.Account.
func (r *recorder) Begin(ctx context.Context, worst float64) (context.Context, error) {
	if err := r.batch.Ledger.Reserve(ctx, r.account, worst); err != nil {
		return nil, err
	}
	err := r.reserveShared(ctx, worst)
	if err == nil {
		// If the log gives no answer, it may have the call, which then counts until another worker
		// reads the log.
		if err = r.note(kindCall, callEntry{worst, r.ended}); errors.Is(err, engine.ErrLeaseLost) {
			r.settleShared(&schemas.Payment{})
		}
	}
	if err != nil {
		r.batch.Ledger.Withdraw(r.account, worst)
		return nil, err
	}
	r.begun, r.worst, r.ended = true, worst, nil
	return r.asking, nil
}

// reserveShared reserves a call in the shared budget. Before that, it records and settles the
// previous call.
func (r *recorder) reserveShared(ctx context.Context, worst float64) error {
	if r.budget == nil || worst == 0 {
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	var err error
	if r.call, err = r.budget.Reserve(ctx, r.job, r.delivery, worst); budget.Exhausted(err) {
		r.batch.Ledger.Close(err)
	}
	return err
}

// settleShared settles a call in the shared budget. The log has the payment.
func (r *recorder) settleShared(p *schemas.Payment) {
	if r.budget != nil && p != nil {
		r.budget.Settle(r.job, r.delivery, r.call, p.Spent())
	}
}

// End implements llms.Account. The log gets an answer together with the reply that it becomes,
// and a failure at once, because the next attempt may come much later.
func (r *recorder) End(_ context.Context, p schemas.Payment) error {
	r.begun = false
	r.batch.Ledger.Settle(r.account, r.worst, p)
	r.batch.Deps.Hooks.Reach(pointAnswered)
	r.ended = &p
	if p.Failed {
		return r.flush()
	}
	return nil
}

// FromCache implements llms.Account.
func (r *recorder) FromCache() { r.batch.Ledger.CountCached(r.account) }

// Attempt implements llms.Account.
func (r *recorder) Attempt() int { return r.job.Attempt }

// flush records the end of a call that no reply contains. A call that a panic left running may
// have been billed, and holds money that other calls wait for.
func (r *recorder) flush() error {
	if r.begun {
		return r.End(r.asking, schemas.Payment{Failed: true, AtRiskUSD: r.worst})
	}
	if r.ended == nil {
		return nil
	}
	if err := r.note(kindPaid, r.ended); err != nil {
		return err
	}
	r.settleShared(r.ended)
	r.ended = nil
	return nil
}

// Reply implements agents.Recorder.
func (r *recorder) Reply(ctx context.Context, turn int, reply schemas.Reply) error {
	if err := r.append(ctx, kindReply, replyEntry{turn, reply, r.ended}); err != nil {
		return err
	}
	r.settleShared(r.ended)
	r.ended = nil
	return nil
}

// Step implements agents.Recorder.
func (r *recorder) Step(ctx context.Context, s schemas.Step) error {
	if err := r.append(ctx, kindStep, s); err != nil {
		return err
	}
	r.batch.Deps.Observer.Step(r.job, s)
	return nil
}

// note appends an entry even if the episode has ended.
func (r *recorder) note(kind string, v any) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.asking), recordTimeout)
	defer cancel()
	return r.append(ctx, kind, v)
}

func (r *recorder) append(ctx context.Context, kind string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding step log entry %s: %w", kind, err)
	}
	if err := r.log.Append(ctx, kind, body); err != nil {
		return err
	}
	r.batch.Deps.Hooks.Reach(pointLogged + kind)
	return nil
}
