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
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
)

// recordTimeout bounds the append of a call to the step log, which does not use the context of
// the episode: a call that was paid for is recorded even if the episode is canceled.
const recordTimeout = time.Minute

// recorder records an episode. As an agents.Recorder it appends to the step log and returns
// what earlier deliveries of the job recorded there. As an llms.Account it pays for the calls.
type recorder struct {
	batch    *Batch
	budget   *budget.Client // nil: no other process shares the budget of the run
	job      schemas.Job
	delivery int
	log      *engine.StepLog
	tape     llms.Tape // set while the agent works
	account  *budget.Account

	steps   []schemas.Step
	pending *schemas.Reply // recorded, but none of its steps are
	rollout *rollout
	verdict *schemas.Verdict

	nextTurn int                // number of the turn that comes next, from 0
	calls    []schemas.ToolCall // of the last reply

	turnCtx  context.Context  // of the policy's current turn
	inCall   bool             // a call is running
	worst    float64          // worst-case cost of that call in USD
	callID   string           // ID of that call in the shared budget
	unlogged *schemas.Payment // payment for the last call that no entry of the step log contains yet
}

// read restores the recorder from the entries of the step log.
func (r *recorder) read(entries []engine.LogEntry) error {
	pendingTurn := -1
	for _, e := range entries {
		var err error
		switch e.Kind {
		case kindReply:
			var re replyEntry
			if err = json.Unmarshal(e.Data, &re); err == nil {
				r.pending, pendingTurn = &re.Reply, re.Turn
				r.nextTurn, r.calls = re.Turn+1, re.Reply.Calls
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

// restoreCalls sets the episode's account, and its share of the shared budget, to the calls in
// the step log, because other processes may have made them.
func (r *recorder) restoreCalls(entries []engine.LogEntry) error {
	var c callCount
	for _, e := range entries {
		if err := c.add(e); err != nil {
			return err
		}
	}
	c.countLost()
	r.batch.Ledger.Restore(r.account, c.calls, c.failed)
	if r.budget != nil && r.delivery > 1 {
		r.budget.Restore(r.job, r.delivery, c.calls.Spent())
	}
	return nil
}

// Replayed implements agents.Recorder.
func (r *recorder) Replayed() ([]schemas.Step, *schemas.Reply) { return r.steps, r.pending }

// TurnContext implements agents.Recorder. The episode's account pays for the calls of the turn.
// When the run may start no further calls, the returned context ends, which cancels waiting
// calls. A running call continues, because its context comes from Begin.
func (r *recorder) TurnContext(ctx context.Context) (context.Context, func()) {
	r.turnCtx = ctx
	r.batch.Activities.SetTurn(r.job.EpisodeID, r.nextTurn+1)
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
	r.doing(observe.InBudget, "")
	if err := r.batch.Ledger.Reserve(ctx, r.account, worst); err != nil {
		return nil, err
	}
	err := r.reserveShared(ctx, worst)
	if err == nil {
		// If the lease is lost, the log does not contain the call, so the reservation can be
		// released. After any other error the log may contain it, and the reservation stays until
		// another worker reads the log.
		if err = r.note(kindCall, callEntry{worst, r.unlogged}); errors.Is(err, engine.ErrLeaseLost) {
			r.settleShared(&schemas.Payment{})
		}
	}
	if err != nil {
		r.batch.Ledger.Withdraw(r.account, worst)
		return nil, err
	}
	r.inCall, r.worst, r.unlogged = true, worst, nil
	r.doing(observe.InModel, "")
	return r.turnCtx, nil
}

// reserveShared reserves the worst-case cost of a call in the shared budget. Before that, it
// records and settles the previous call.
func (r *recorder) reserveShared(ctx context.Context, worst float64) error {
	if r.budget == nil || worst == 0 {
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	var err error
	if r.callID, err = r.budget.Reserve(ctx, r.job, r.delivery, worst); budget.Exhausted(err) {
		r.batch.Ledger.Close(err)
	}
	return err
}

// settleShared settles a call in the shared budget. The step log must have the payment already.
func (r *recorder) settleShared(p *schemas.Payment) {
	if r.budget != nil && p != nil {
		r.budget.Settle(r.job, r.delivery, r.callID, p.Spent())
	}
}

// End implements llms.Account. The payment for an answer is logged together with the reply; that
// for a failed call is logged at once, because the next call may start much later.
func (r *recorder) End(_ context.Context, p schemas.Payment) error {
	r.inCall = false
	r.batch.Ledger.Settle(r.account, r.worst, p)
	r.showCalls()
	r.batch.Deps.Hooks.Reach(pointAnswered)
	r.unlogged = &p
	if p.Failed {
		return r.flush()
	}
	return nil
}

// Waiting implements llms.Account.
func (r *recorder) Waiting(w llms.Wait, cause error) {
	switch w {
	case llms.WaitRate:
		r.doing(observe.InRateLimit, "")
	case llms.WaitRetry:
		r.doing(observe.InCallRetry, r.batch.Config.public(messageOf(cause)))
		r.batch.Deps.Log.Info("model call failed", "episode", r.job.EpisodeID, "task", r.job.Instance, "error", cause)
	}
}

// showCalls shows what the calls of the episode have cost so far.
func (r *recorder) showCalls() {
	r.batch.Activities.SetCalls(r.job.EpisodeID, r.batch.Ledger.Calls(r.account))
}

func (r *recorder) doing(d observe.Doing, detail string) {
	r.batch.Activities.Set(r.job.EpisodeID, d, detail)
}

// FromCache implements llms.Account.
func (r *recorder) FromCache() { r.batch.Ledger.CountCached(r.account) }

// Attempt implements llms.Account.
func (r *recorder) Attempt() int { return r.job.Attempt }

// flush logs the payment of the last call if it did not lead to a reply. If a panic interrupted
// the call, it may have been billed, and its reservation blocks other calls, so flush ends it
// first.
func (r *recorder) flush() error {
	if r.inCall {
		return r.End(r.turnCtx, schemas.Payment{Failed: true, AtRiskUSD: r.worst})
	}
	if r.unlogged == nil {
		return nil
	}
	if err := r.note(kindPaid, r.unlogged); err != nil {
		return err
	}
	r.settleShared(r.unlogged)
	r.unlogged = nil
	return nil
}

// Reply implements agents.Recorder.
func (r *recorder) Reply(ctx context.Context, turn int, reply schemas.Reply) error {
	if err := r.append(ctx, kindReply, replyEntry{turn, reply, r.unlogged}); err != nil {
		return err
	}
	r.settleShared(r.unlogged)
	r.unlogged = nil
	r.nextTurn, r.calls = turn+1, reply.Calls
	r.showCall(0)
	return nil
}

// showCall shows the call of the current turn that runs next.
func (r *recorder) showCall(n int) {
	if n < len(r.calls) {
		r.doing(observe.InTool, r.calls[n].Name)
	}
}

// Step implements agents.Recorder.
func (r *recorder) Step(ctx context.Context, s schemas.Step) error {
	if err := r.append(ctx, kindStep, s); err != nil {
		return err
	}
	r.showCall(s.Call + 1)
	r.batch.Deps.Observer.Step(r.job, s)
	return nil
}

// note appends an entry, with a context of its own, so that it works even if the episode has ended.
func (r *recorder) note(kind string, v any) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.turnCtx), recordTimeout)
	defer cancel()
	return r.append(ctx, kind, v)
}

func (r *recorder) append(ctx context.Context, kind string, v any) error {
	r.doing(observe.InRecord, "")
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
