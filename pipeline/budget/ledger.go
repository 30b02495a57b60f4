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
	open  context.Context // ends when no further call may begin; its cause is the reason
	close context.CancelCauseFunc

	mu       sync.Mutex
	queue    []*waiter // calls that wait for money, in the order in which they came
	run      limit
	task     float64 // maximum of each task
	episode  float64 // maximum of each episode
	tasks    map[string]*limit
	accounts map[string]*Account
	earlier  float64 // spent by earlier processes
	answered bool    // a model has answered this process
}

// Account is that of one episode.
type Account struct {
	limits [3]*limit // of the run, the task, the episode
	calls  schemas.Calls
	failed bool // the last call failed: the next one repeats it
}

// NewLedger returns a ledger that enforces limits. If other processes spend from the same
// budget, their shared state enforces the limits of the run and of tasks instead.
func NewLedger(limits Limits) *Ledger {
	l := &Ledger{run: limit{max: limits.Run}, task: limits.Task, episode: limits.Episode, tasks: map[string]*limit{}, accounts: map[string]*Account{}}
	l.open, l.close = context.WithCancelCause(context.Background())
	return l
}

// Open returns a context that ends when no further call may begin. Its cause is the reason.
func (l *Ledger) Open() context.Context { return l.open }

// Close refuses further calls for the given reason.
func (l *Ledger) Close(reason error) { l.close(reason) }

// Account returns the account of an episode. The task is "" if it is no longer known.
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

// AddEarlier adds what earlier processes paid for an episode. failed says that the last of
// these calls failed.
func (l *Ledger) AddEarlier(a *Account, c schemas.Calls, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.calls, a.failed = a.calls.Plus(c), failed
	l.earlier += c.Spent()
	for _, of := range a.limits {
		of.spent += c.Spent()
	}
}

// Restore makes an account what its step log says.
func (l *Ledger) Restore(a *Account, c schemas.Calls, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	more := c.Spent() - a.calls.Spent()
	a.calls, a.failed = c, failed
	for _, of := range a.limits {
		of.spent += more
	}
}

// waiter is a call that waits for its money.
type waiter struct {
	account *Account
	worst   float64
	answer  chan error // has room for one; nil means that the money is reserved
}

// Reserve sets worst USD aside for a call. It waits while running calls hold what is left.
// First come, first served: a small call does not overtake a large one that waits for the
// same limit.
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
		w.answer <- nil // the episode ended at the same moment: give the money back below
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
		l.serve() // calls behind it may fit now
		if ctx.Err() == nil {
			return context.Cause(l.open)
		}
	}
	return fmt.Errorf("waiting for the budget: %w", context.Cause(ctx))
}

// serve answers the calls that can be answered, in their order. A waiting call keeps the
// limits of its task and episode from later calls, and that of the run if it waits for that
// one: so its turn comes. The caller holds the lock.
func (l *Ledger) serve() {
	waitedFor := map[*limit]bool{}
	l.queue = slices.DeleteFunc(l.queue, func(w *waiter) bool {
		behind := slices.ContainsFunc(w.account.limits[:], func(of *limit) bool { return waitedFor[of] })
		ok, err := l.try(w.account, w.worst, behind)
		if ok || err != nil {
			w.answer <- err
			return true
		}
		for i, of := range w.account.limits {
			waitedFor[of] = of.max > 0 && (i > 0 || waitedFor[of] || !of.fits(w.worst))
		}
		return false
	})
}

// try sets worst aside, unless the call stands behind others.
func (l *Ledger) try(a *Account, worst float64, behind bool) (bool, error) {
	if l.open.Err() != nil {
		return false, context.Cause(l.open)
	}
	switch run, task, own := a.limits[0], a.limits[1], a.limits[2]; {
	case run.excludes(worst):
		err := &ExhaustedError{run.refusal("the run's budget", worst)}
		l.close(err)
		return false, err
	case task.excludes(worst):
		return false, fmt.Errorf("%w: %s", llms.ErrBudget, task.refusal("limits.task_cost", worst))
	case own.excludes(worst):
		return false, fmt.Errorf("%w: %s", llms.ErrBudget, own.refusal("limits.episode_cost", worst))
	case behind, !run.fits(worst) || !task.fits(worst) || !own.fits(worst):
		return false, nil
	}
	for _, of := range a.limits {
		of.reserved += worst
	}
	a.calls.Made++
	if a.failed {
		a.calls.Retried++
	}
	return true, nil
}

// Withdraw takes back a reservation whose call is not made.
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

// Settle turns a reservation into what was paid.
func (l *Ledger) Settle(a *Account, worst float64, p schemas.Payment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.calls, a.failed = a.calls.Ended(p), p.Failed
	l.answered = l.answered || !p.Failed
	l.release(a, worst, p.Spent())
}

func (l *Ledger) release(a *Account, worst, spent float64) {
	for _, of := range a.limits {
		of.reserved -= worst
		of.spent += spent
	}
	l.serve()
}

// CountCached counts a reply that came from the cache and needed no call.
func (l *Ledger) CountCached(a *Account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.calls.FromCache++
}

// Calls returns what the calls of an episode add up to.
func (l *Ledger) Calls(a *Account) schemas.Calls {
	l.mu.Lock()
	defer l.mu.Unlock()
	return a.calls
}

// Paid returns what the calls of an episode cost. It is nil if that is unknown: a call has no
// price, or may have been billed without an answer.
func (l *Ledger) Paid(episode string) *float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[episode]
	if a == nil || a.calls.Unpriced > 0 || a.calls.AtRiskUSD > 0 {
		return nil
	}
	return new(a.calls.CostUSD)
}

// Totals returns what the calls of the run add up to, and the USD that this process spent.
func (l *Ledger) Totals() (all schemas.Calls, here float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.accounts {
		all = all.Plus(a.calls)
	}
	return all, max(0, all.Spent()-l.earlier)
}

// Answered reports whether a model has answered this process.
func (l *Ledger) Answered() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered
}

// spent returns what the run, its tasks and its episodes have spent.
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
