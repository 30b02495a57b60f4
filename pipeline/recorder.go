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

// Kinds of entries in a step log.
const (
	kindCall    = "call" // a model is about to be asked
	kindPaid    = "paid" // the call has ended without a reply to record
	kindReply   = "reply"
	kindStep    = "step"
	kindRollout = "rollout" // the episode without its steps: the agent is through
	kindVerdict = "verdict"
)

// recordTimeout bounds the note of a call. It is detached from the end of the
// episode: what was paid is noted also then.
const recordTimeout = time.Minute

// recorder is an agents.Recorder over a step log, the llms.Account of its
// episode, and the memory of what earlier deliveries of the job achieved.
type recorder struct {
	run     *run
	job     schemas.Job
	number  int // of the job's delivery
	log     *engine.StepLog
	tape    llms.Tape // set while the agent works
	account *budget.Account

	steps   []schemas.Step
	pending *schemas.Reply
	rollout *rollout
	verdict *schemas.Verdict

	asking context.Context // of the policy's turn
	begun  bool            // a call is under way
	worst  float64         // of that call
	call   string          // its name in the shared budget
	ended  *schemas.Payment
}

// rollout is what is known when the agent is through.
type rollout struct {
	Episode  schemas.Episode `json:"episode"`  // without Steps
	Replayed int             `json:"replayed"` // how many of the first steps were replayed
}

// callEntry announces a call. Before is the end of the call before, where no
// other entry has told it.
type callEntry struct {
	Worst  float64          `json:"worst"`
	Before *schemas.Payment `json:"before,omitempty"`
}

type replyEntry struct {
	Turn  int              `json:"turn"`
	Reply schemas.Reply    `json:"reply"`
	Paid  *schemas.Payment `json:"paid,omitempty"`
}

// tally adds up the calls of a step log, entry by entry.
type tally struct {
	calls  schemas.Calls
	open   bool // a call was announced and has no end yet
	worst  float64
	failed bool
}

func (t *tally) add(e engine.LogEntry) error {
	var err error
	switch e.Kind {
	case kindCall:
		var c callEntry
		err = json.Unmarshal(e.Data, &c)
		t.end(c.Before)
		t.lose()
		t.calls.Made++
		if t.failed {
			t.calls.Retried++
		}
		t.open, t.worst = true, c.Worst
	case kindPaid:
		var p schemas.Payment
		err = json.Unmarshal(e.Data, &p)
		t.end(&p)
	case kindReply:
		var r struct {
			Paid  *schemas.Payment `json:"paid"`
			Reply struct {
				FromCache bool `json:"from_cache"`
			} `json:"reply"`
		}
		err = json.Unmarshal(e.Data, &r)
		t.end(r.Paid)
		if r.Reply.FromCache {
			t.calls.FromCache++
		}
	}
	if err != nil {
		return fmt.Errorf("reading the step log: entry %s: %w", e.Kind, err)
	}
	return nil
}

func (t *tally) end(p *schemas.Payment) {
	if p != nil {
		t.calls, t.open, t.failed = t.calls.Ended(*p), false, p.Failed
	}
}

// lose counts a call that was announced and has no end: its process died. It
// keeps its worst case.
func (t *tally) lose() {
	if t.open {
		t.calls.LostInFlight++
		t.calls.AtRiskUSD += t.worst
		t.open, t.failed = false, false
	}
}

// reckon counts what earlier processes paid for episodes that are not staged,
// before anything else is.
func (r *run) reckon(ctx context.Context) error {
	tallies, err := r.tallies(ctx)
	for id, t := range tallies {
		r.ledger.AddEarlier(r.ledger.Account(id, r.todo[id].TaskID), t.calls, t.failed)
	}
	return err
}

// tallies adds up the step logs of the episodes that are not staged.
func (r *run) tallies(ctx context.Context) (map[string]*tally, error) {
	tallies := map[string]*tally{}
	err := r.engine.ReadLogs(ctx, func(id string, e engine.LogEntry) error {
		if known, ok := r.episodes[id]; ok && known.Outcome != schemas.OutcomeInfra {
			return nil
		}
		if tallies[id] == nil {
			tallies[id] = &tally{}
		}
		return tallies[id].add(e)
	})
	for _, t := range tallies {
		t.lose()
	}
	return tallies, err
}

// openRecorder reads a job's log back.
func (r *run) openRecorder(ctx context.Context, job schemas.Job, delivery int) (*recorder, error) {
	log, entries, err := r.engine.OpenLog(ctx, job.EpisodeID)
	if err != nil {
		return nil, fmt.Errorf("opening the step log: %w", err)
	}
	rec := &recorder{run: r, job: job, number: delivery, log: log, account: r.ledger.Account(job.EpisodeID, job.TaskID)}
	if r.deps.Cluster != nil { // what other workers paid for it
		var t tally
		for _, e := range entries {
			if err := t.add(e); err != nil {
				return nil, err
			}
		}
		t.lose()
		r.ledger.Restore(rec.account, t.calls, t.failed)
		if r.budget != nil && delivery > 1 {
			r.budget.Restore(job, delivery, t.calls.Spent())
		}
	}
	pendingTurn := -1
	for _, e := range entries {
		var err error
		switch e.Kind {
		case kindReply:
			var re replyEntry
			if err = json.Unmarshal(e.Data, &re); err == nil {
				rec.pending, pendingTurn = &re.Reply, re.Turn
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
	return rec, nil
}

// Replayed implements agents.Recorder.
func (r *recorder) Replayed() ([]schemas.Step, *schemas.Reply) { return r.steps, r.pending }

// Asking implements agents.Recorder. Calls of the turn are paid from this
// episode's account; when the run takes no more calls, all waiting before one
// ends, and only a call under way goes on.
func (r *recorder) Asking(ctx context.Context) (context.Context, func()) {
	r.asking = ctx
	turn, cancel := context.WithCancelCause(llms.WithTape(llms.WithAccount(ctx, r), r.tape))
	stop := context.AfterFunc(r.run.ledger.Open(), func() { cancel(context.Cause(r.run.ledger.Open())) })
	return turn, func() {
		stop()
		cancel(nil)
	}
}

// Begin implements llms.Account.
func (r *recorder) Begin(ctx context.Context, worst float64) (context.Context, error) {
	if err := r.run.ledger.Reserve(ctx, r.account, worst); err != nil {
		return nil, err
	}
	err := r.fund(ctx, worst)
	if err == nil {
		// Without an answer the call may be on record: then it counts, until somebody reads the log.
		if err = r.note(kindCall, callEntry{worst, r.ended}); errors.Is(err, engine.ErrLeaseLost) {
			r.settled(&schemas.Payment{})
		}
	}
	if err != nil {
		r.run.ledger.Withdraw(r.account, worst)
		return nil, err
	}
	r.begun, r.worst, r.ended = true, worst, nil
	r.run.deps.Crash("announced-call")
	return r.asking, nil
}

// fund has a call paid from the budget that all workers of a cluster share. What the
// call before came to is on record by then.
func (r *recorder) fund(ctx context.Context, worst float64) error {
	if r.run.budget == nil || worst == 0 {
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	var err error
	if r.call, err = r.run.budget.Reserve(ctx, r.job, r.number, worst); budget.Exhausted(err) {
		r.run.ledger.Close(err)
	}
	return err
}

// settled tells that budget what a call came to, which is on record.
func (r *recorder) settled(p *schemas.Payment) {
	if r.run.budget != nil && p != nil {
		r.run.budget.Settle(r.job, r.number, r.call, p.Spent())
	}
}

// End implements llms.Account. An answer is on record with the reply it becomes,
// a failure at once: the next try may be long in coming.
func (r *recorder) End(_ context.Context, p schemas.Payment) error {
	r.begun = false
	r.run.ledger.Settle(r.account, r.worst, p)
	r.run.deps.Crash("answered-call")
	r.ended = &p
	if p.Failed {
		return r.flush()
	}
	return nil
}

// FromCache implements llms.Account.
func (r *recorder) FromCache() { r.run.ledger.CountCached(r.account) }

// Attempt implements llms.Account.
func (r *recorder) Attempt() int { return r.job.Attempt }

// flush notes the end of a call that no reply tells of. One that a panic left
// under way may have been billed, and holds money that others wait for.
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
	r.settled(r.ended)
	r.ended = nil
	return nil
}

// Reply implements agents.Recorder.
func (r *recorder) Reply(ctx context.Context, turn int, reply schemas.Reply) error {
	if err := r.append(ctx, kindReply, replyEntry{turn, reply, r.ended}); err != nil {
		return err
	}
	r.settled(r.ended)
	r.ended = nil
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

// note appends beside the episode's own end.
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
	return r.log.Append(ctx, kind, body)
}
