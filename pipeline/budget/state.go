package budget

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/pipeline/engine"
)

// sharedState is what the processes of a run on a cluster agree on. Each of them changes it
// by compare-and-swap, so that no call is made that it has no room for. Amounts are USD.
type sharedState struct {
	Limit     float64 `json:"limit"`      // of the run; 0: none
	TaskLimit float64 `json:"task_limit"` // of all attempts at one task; 0: none
	// Closed is what the closed shares have spent. What each episode and task has of it is in
	// closedTotals of their own.
	Closed    float64          `json:"shelved"`
	Open      map[string]share `json:"open"`           // of the episodes that workers execute
	Exhausted string           `json:"over,omitempty"` // why no further call may begin
	Writer    string           `json:"by"`             // who wrote this state, with a number: no two are equal
}

// share is what one episode has of the budget while a worker executes it.
type share struct {
	Task  string  `json:"task"`
	Spent float64 `json:"spent"`
	// Held is reserved for the running call, whose name is Call. No two calls have the same name.
	Held float64 `json:"held,omitempty"`
	Call string  `json:"call,omitempty"`
	// Lost says that the worker that made the call has lost the episode. Held counts as spent
	// until the step log says what became of the call.
	Lost     bool `json:"lost,omitempty"`
	Delivery int  `json:"delivery"` // of the job; a worker with an earlier one changes nothing
}

// closedTotal is what the closed shares of one episode or task have spent.
type closedTotal struct {
	Spent    float64 `json:"spent"`
	Delivery int     `json:"delivery,omitempty"` // of the episode's last share
}

// draft is a copy of the shared state that is being changed, with the totals that this takes.
type draft struct {
	sharedState
	read    func(key string) (closedTotal, error)
	totals  map[string]closedTotal
	reads   int             // of totals
	written map[string]bool // keys of the totals to write
	changed bool
}

func newDraft(body []byte, read func(string) (closedTotal, error)) (*draft, error) {
	d := &draft{read: read, totals: map[string]closedTotal{}, written: map[string]bool{}}
	if err := json.Unmarshal(body, &d.sharedState); err != nil {
		return nil, fmt.Errorf("reading the budget of the run: %w", err)
	}
	if d.Open == nil {
		d.Open = map[string]share{}
	}
	return d, nil
}

// clone returns a draft that can be changed independently.
func (d *draft) clone() *draft {
	c := *d
	c.Open, c.totals, c.written, c.changed = maps.Clone(d.Open), maps.Clone(d.totals), map[string]bool{}, false
	c.reads = 0
	return &c
}

// encode returns the state and its changed totals, as written by writer.
func (d *draft) encode(writer string) (state []byte, totals map[string][]byte, err error) {
	d.Writer = writer
	totals = map[string][]byte{}
	for key := range d.written {
		if totals[key], err = json.Marshal(d.totals[key]); err != nil {
			return nil, nil, fmt.Errorf("encoding the budget: %w", err)
		}
	}
	if state, err = json.Marshal(d.sharedState); err != nil {
		return nil, nil, fmt.Errorf("encoding the budget: %w", err)
	}
	return state, totals, nil
}

func episodeKey(id string) string { return "episode-" + engine.WorkerID(id) }
func taskKey(id string) string    { return "task-" + engine.WorkerID(id) }

func (d *draft) total(key string) (closedTotal, error) {
	if v, ok := d.totals[key]; ok {
		return v, nil
	}
	d.reads++
	v, err := d.read(key)
	if err == nil {
		d.totals[key] = v
	}
	return v, err
}

// limits returns those of the run and of a task.
func (d *draft) limits(task string) (run, own limit, err error) {
	run, own = limit{max: d.Limit, spent: d.Closed}, limit{max: d.TaskLimit}
	if d.TaskLimit > 0 {
		of, err := d.total(taskKey(task))
		if err != nil {
			return run, own, err
		}
		own.spent = of.Spent
	}
	for _, sh := range d.Open {
		sh.addTo(&run)
		if sh.Task == task {
			sh.addTo(&own)
		}
	}
	return run, own, nil
}

func (sh share) addTo(l *limit) {
	l.spent += sh.Spent
	if sh.Lost {
		l.spent += sh.Held
	} else {
		l.reserved += sh.Held
	}
}

// waitList has the limits that earlier requests wait for.
type waitList struct {
	run   bool
	tasks map[string]bool
}

// reserve sets aside what want holds. ok is false if it has to wait. A caller that does not
// know whether it got the money may ask again.
func (d *draft) reserve(episode string, want share, before *waitList) (ok bool, err error) {
	sh, open := d.Open[episode]
	switch {
	case open && sh.Held > 0 && sh.Call == want.Call && sh.Delivery == want.Delivery:
		return true, nil
	case d.Exhausted != "":
		return false, &ExhaustedError{d.Exhausted}
	case !open:
		if sh, err = d.closedShare(episode); err != nil {
			return false, err
		}
	}
	if sh.Delivery > want.Delivery {
		return false, engine.ErrLeaseLost
	}
	worst := want.Held
	run, own, err := d.limits(want.Task)
	switch {
	case err != nil:
		return false, err
	case run.excludes(worst):
		d.Exhausted, d.changed = run.refusal("the run's budget", worst), true
		return false, &ExhaustedError{d.Exhausted}
	case own.excludes(worst):
		return false, fmt.Errorf("%w: %s", llms.ErrBudget, own.refusal("limits.task_cost", worst))
	case before.run || before.tasks[want.Task] || !run.fits(worst) || !own.fits(worst):
		before.run = before.run || !run.fits(worst)
		before.tasks[want.Task] = before.tasks[want.Task] || d.TaskLimit > 0
		return false, nil
	}
	if !open {
		if err := d.addClosed(episode, want.Task, -sh.Spent, closedTotal{Delivery: want.Delivery}); err != nil {
			return false, err
		}
	}
	want.Spent = sh.Spent + sh.Held
	d.Open[episode], d.changed = want, true
	return true, nil
}

// settle turns what is held for a call into what was paid, once the step log has the payment.
func (d *draft) settle(episode string, delivery int, call string, paid float64) {
	if sh, ok := d.Open[episode]; ok && sh.Delivery == delivery && sh.Held > 0 && sh.Call == call {
		d.Open[episode], d.changed = share{Task: sh.Task, Spent: sh.Spent + paid, Delivery: delivery}, true
	}
}

// markLost counts a call as spent because the worker that made it has lost the episode.
func (d *draft) markLost(episode string) {
	sh := d.Open[episode]
	sh.Lost = true
	d.Open[episode], d.changed = sh, true
}

// restore makes a share what the step log of its episode says.
func (d *draft) restore(episode, task string, delivery int, spent float64) error {
	sh, open := d.Open[episode]
	if !open {
		var err error
		if sh, err = d.closedShare(episode); err != nil {
			return err
		}
		if sh.Spent == 0 && spent == 0 {
			return nil
		}
	}
	if sh.Delivery > delivery {
		return nil
	}
	if !open {
		if err := d.addClosed(episode, task, -sh.Spent, closedTotal{Delivery: delivery}); err != nil {
			return err
		}
	}
	d.Open[episode], d.changed = share{Task: task, Spent: spent, Delivery: delivery}, true
	return nil
}

// closeShare closes the share of an episode that no worker executes any more.
func (d *draft) closeShare(episode string, delivery int) error {
	sh, open := d.Open[episode]
	if !open || sh.Delivery > delivery || sh.Held > 0 {
		return nil
	}
	delete(d.Open, episode)
	d.changed = true
	return d.addClosed(episode, sh.Task, sh.Spent, closedTotal{sh.Spent, sh.Delivery})
}

// closedShare returns the share of an episode that no worker executes.
func (d *draft) closedShare(episode string) (share, error) {
	of, err := d.total(episodeKey(episode))
	return share{Spent: of.Spent, Delivery: of.Delivery}, err
}

// addClosed adds to what closed shares have spent. The total of the episode becomes own.
func (d *draft) addClosed(episode, task string, more float64, own closedTotal) error {
	if more == 0 {
		return nil
	}
	of, err := d.total(taskKey(task))
	if err != nil {
		return err
	}
	d.Closed += more
	of.Spent += more
	for key, total := range map[string]closedTotal{taskKey(task): of, episodeKey(episode): own} {
		d.totals[key], d.written[key] = total, true
	}
	return nil
}
