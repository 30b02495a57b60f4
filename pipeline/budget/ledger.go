package budget

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Ledger holds the accounts of a run's episodes. It is safe for concurrent use.
type Ledger struct {
	open  context.Context // ends when no further call may start; its cause is the reason
	close context.CancelCauseFunc

	mu       sync.Mutex
	queue    []*waiter // waiting calls in order of arrival
	run      limit
	task     float64           // maximum of each task
	episode  float64           // maximum of each episode
	tasks    map[string]*limit // by task ID
	accounts map[string]*Account
	earlier  float64 // spent by earlier processes
	answered bool    // a model has answered a call of this process
}

// Account is the account of one episode.
type Account struct {
	limits [3]*limit // of the run, the task, the episode
	calls  schemas.Calls
	failed bool // the last call failed, so that the next one repeats it
}

// NewLedger returns a ledger that enforces limits. On a cluster, the caller must leave out the
// limits of the run and its tasks, which the shared state enforces.
func NewLedger(limits Limits) *Ledger {
	l := &Ledger{run: limit{max: limits.Run}, task: limits.Task, episode: limits.Episode, tasks: map[string]*limit{}, accounts: map[string]*Account{}}
	l.open, l.close = context.WithCancelCause(context.Background())
	return l
}

// Open returns a context that ends when no further call may start. Its cause is the reason.
func (l *Ledger) Open() context.Context { return l.open }

// Close refuses further calls for the given reason.
func (l *Ledger) Close(reason error) { l.close(reason) }

// Account returns the account of an episode and creates it if necessary. task is "" if it is no
// longer known.
func (l *Ledger) Account(episode, task string) *Account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[episode]
	if a == nil {
		t := l.tasks[task]
		if t == nil {
			t = &limit{max: l.task}
			l.tasks[task] = t
		}
		a = &Account{limits: [3]*limit{&l.run, t, {max: l.episode}}}
		l.accounts[episode] = a
	}
	return a
}

// AddEarlier adds the calls that earlier processes made for an episode. failed says whether the
// last one failed.
func (l *Ledger) AddEarlier(a *Account, c schemas.Calls, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.calls, a.failed = a.calls.Add(c), failed
	l.earlier += c.Spent()
	for _, lim := range a.limits {
		lim.spent += c.Spent()
	}
}

// Restore sets an account to the calls in the episode's step log. failed says whether the last one
// failed.
func (l *Ledger) Restore(a *Account, c schemas.Calls, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	more := c.Spent() - a.calls.Spent()
	a.calls, a.failed = c, failed
	for _, lim := range a.limits {
		lim.spent += more
	}
}

// waiter is a call that waits for its reservation.
type waiter struct {
	account *Account
	worst   float64
	answer  chan error // buffers one answer; nil means that the reservation is granted
}

// Reserve reserves worst USD for a call. It waits while the reservations of running calls take up
// the rest of a limit. First come, first served: a small call does not overtake a large one that
// waits for the same limit.
func (l *Ledger) Reserve(ctx context.Context, a *Account, worst float64) error {
	w := &waiter{a, worst, make(chan error, 1)}
	l.mu.Lock()
	l.queue = append(l.queue, w)
	l.serve()
	l.mu.Unlock()
	select {
	case <-l.open.Done():
	case <-ctx.Done():
	case err := <-w.answer:
		if err != nil || ctx.Err() == nil {
			return err
		}
		w.answer <- nil // ctx ended at the same moment: take the reservation back below
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case err := <-w.answer:
		if err != nil {
			return err
		}
		if ctx.Err() == nil { // granted before the ledger was closed
			return nil
		}
		l.takeBack(a, worst)
	default:
		l.queue = slices.DeleteFunc(l.queue, func(o *waiter) bool { return o == w })
		l.serve() // calls that it blocked may fit now
		if ctx.Err() == nil {
			return context.Cause(l.open)
		}
	}
	return fmt.Errorf("waiting for the budget: %w", context.Cause(ctx))
}

// serve answers the waiting calls that can be answered, in their order. A call that must wait
// blocks later calls under the limits of its task and its episode, and under that of the run if it
// waits for that one, so that they cannot use up the room that it waits for. The caller holds the
// lock.
func (l *Ledger) serve() {
	waitedFor := map[*limit]bool{}
	l.queue = slices.DeleteFunc(l.queue, func(w *waiter) bool {
		blocked := slices.ContainsFunc(w.account.limits[:], func(lim *limit) bool { return waitedFor[lim] })
		ok, err := l.tryReserve(w.account, w.worst, blocked)
		if ok || err != nil {
			w.answer <- err
			return true
		}
		for i, lim := range w.account.limits {
			waitedFor[lim] = lim.max > 0 && (i > 0 || waitedFor[lim] || !lim.fits(w.worst))
		}
		return false
	})
}

// tryReserve reserves worst USD. It returns false without an error if the call must wait, because
// an earlier call blocks it or a limit has no room yet.
func (l *Ledger) tryReserve(a *Account, worst float64, blocked bool) (bool, error) {
	if l.open.Err() != nil {
		return false, context.Cause(l.open)
	}
	switch run, task, episode := a.limits[0], a.limits[1], a.limits[2]; {
	case run.excludes(worst):
		err := &ExhaustedError{run.refusal("the run's budget", worst)}
		l.close(err)
		return false, err
	case task.excludes(worst):
		return false, fmt.Errorf("%w: %s", llms.ErrBudget, task.refusal("limits.task_cost", worst))
	case episode.excludes(worst):
		return false, fmt.Errorf("%w: %s", llms.ErrBudget, episode.refusal("limits.episode_cost", worst))
	case blocked, !run.fits(worst) || !task.fits(worst) || !episode.fits(worst):
		return false, nil
	}
	for _, lim := range a.limits {
		lim.reserved += worst
	}
	a.calls.Made++
	if a.failed {
		a.calls.Retried++
	}
	return true, nil
}

// Withdraw cancels a reservation whose call was not made.
func (l *Ledger) Withdraw(a *Account, worst float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takeBack(a, worst)
}

func (l *Ledger) takeBack(a *Account, worst float64) {
	a.calls.Made--
	if a.failed {
		a.calls.Retried--
	}
	l.release(a, worst, 0)
}

// Settle replaces the reservation of a call with the payment p.
func (l *Ledger) Settle(a *Account, worst float64, p schemas.Payment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.calls, a.failed = a.calls.AddResult(p), p.Failed
	l.answered = l.answered || !p.Failed
	l.release(a, worst, p.Spent())
}

func (l *Ledger) release(a *Account, worst, spent float64) {
	for _, lim := range a.limits {
		lim.reserved -= worst
		lim.spent += spent
	}
	l.serve()
}

// CountCached counts a reply that came from the cache and needed no call.
func (l *Ledger) CountCached(a *Account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.calls.FromCache++
}

// Calls returns the sum of the calls of an episode.
func (l *Ledger) Calls(a *Account) schemas.Calls {
	l.mu.Lock()
	defer l.mu.Unlock()
	return a.calls
}

// Paid returns the cost of the calls of an episode. It is nil if that is unknown, because a call
// has no price or may have been billed without an answer.
func (l *Ledger) Paid(episode string) *float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[episode]
	if a == nil || a.calls.Unpriced > 0 || a.calls.AtRiskUSD > 0 {
		return nil
	}
	return new(a.calls.CostUSD)
}

// Totals returns the sum of the calls of the run, and the USD that this process spent.
func (l *Ledger) Totals() (all schemas.Calls, here float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.accounts {
		all = all.Add(a.calls)
	}
	return all, max(0, all.Spent()-l.earlier)
}

// Answered reports whether a model has answered a call of this process.
func (l *Ledger) Answered() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered
}

// spent returns the amounts that the run, its tasks and its episodes have spent.
func (l *Ledger) spent() (run float64, tasks, episodes map[string]float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tasks, episodes = map[string]float64{}, map[string]float64{}
	for id, t := range l.tasks {
		tasks[id] = t.spent
	}
	for id, a := range l.accounts {
		episodes[id] = a.calls.Spent()
	}
	return l.run.spent, tasks, episodes
}
