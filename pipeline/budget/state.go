package budget

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/pipeline/engine"
)

// sharedState is the budget that the processes of a run on a cluster share. They change it by
// compare-and-swap, so that no call starts for which it has no room. Amounts are in USD.
type sharedState struct {
	Limit     float64 `json:"limit"`      // of the run; 0: no limit
	TaskLimit float64 `json:"task_limit"` // of all attempts at one task; 0: no limit
	// Closed is the sum of the closed shares. The sums per episode and per task are stored
	// separately, as closedTotals.
	Closed    float64          `json:"shelved"`
	Open      map[string]share `json:"open"`           // by episode ID: shares of the episodes that workers execute
	Exhausted string           `json:"over,omitempty"` // the reason why no further call may start
	Writer    string           `json:"by"`             // process and counter, which make every state different
}

// share is the part of the budget that one episode has spent or reserved while a worker executes
// the episode.
type share struct {
	Task  string  `json:"task"`
	Spent float64 `json:"spent"`
	// Held is reserved for the running call, which Call identifies.
	Held float64 `json:"held,omitempty"`
	Call string  `json:"call,omitempty"`
	// Lost says that the worker that made the call has lost the episode. Held counts as spent
	// until the step log shows the result of the call.
	Lost     bool `json:"lost,omitempty"`
	Delivery int  `json:"delivery"` // of the job; changes from workers with an earlier delivery are ignored
}

// closedTotal is the sum of the closed shares of one episode or task.
type closedTotal struct {
	Spent    float64 `json:"spent"`
	Delivery int     `json:"delivery,omitempty"` // of the episode's last share
}

// draft is a copy of the shared state for changes, together with the totals that these concern.
type draft struct {
	sharedState
	read    func(key string) (closedTotal, error)
	totals  map[string]closedTotal // those that were read or changed
	reads   int                    // calls of read
	written map[string]bool        // keys of the totals to write
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

// total returns a total. It reads the total if the draft does not contain it yet.
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

func (d *draft) limits(task string) (runLimit, taskLimit limit, err error) {
	runLimit, taskLimit = limit{max: d.Limit, spent: d.Closed}, limit{max: d.TaskLimit}
	if d.TaskLimit > 0 {
		closed, err := d.total(taskKey(task))
		if err != nil {
			return runLimit, taskLimit, err
		}
		taskLimit.spent = closed.Spent
	}
	for _, sh := range d.Open {
		sh.addTo(&runLimit)
		if sh.Task == task {
			sh.addTo(&taskLimit)
		}
	}
	return runLimit, taskLimit, nil
}

func (sh share) addTo(l *limit) {
	l.spent += sh.Spent
	if sh.Lost {
		l.spent += sh.Held
	} else {
		l.reserved += sh.Held
	}
}

// waitList holds the limits that earlier requests in the queue wait for.
type waitList struct {
	run   bool
	tasks map[string]bool
}

// reserve reserves want.Held for a call of an episode. ok is false without an error if the call
// has to wait, which reserve notes in waiting. A caller that does not know whether reserve
// succeeded may repeat it.
func (d *draft) reserve(episode string, want share, waiting *waitList) (ok bool, err error) {
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
	run, task, err := d.limits(want.Task)
	switch {
	case err != nil:
		return false, err
	case run.excludes(worst):
		d.Exhausted, d.changed = run.refusal("the run's budget", worst), true
		return false, &ExhaustedError{d.Exhausted}
	case task.excludes(worst):
		return false, fmt.Errorf("%w: %s", llms.ErrBudget, task.refusal("limits.task_cost", worst))
	case waiting.run || waiting.tasks[want.Task] || !run.fits(worst) || !task.fits(worst):
		waiting.run = waiting.run || !run.fits(worst)
		waiting.tasks[want.Task] = waiting.tasks[want.Task] || d.TaskLimit > 0
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

// settle replaces the reservation of a call with the amount that was paid. The step log must have
// the payment already.
func (d *draft) settle(episode string, delivery int, call string, paid float64) {
	if sh, ok := d.Open[episode]; ok && sh.Delivery == delivery && sh.Held > 0 && sh.Call == call {
		d.Open[episode], d.changed = share{Task: sh.Task, Spent: sh.Spent + paid, Delivery: delivery}, true
	}
}

// markLost counts the reservation of an episode as spent, because the worker that made the call
// has lost the episode.
func (d *draft) markLost(episode string) {
	sh := d.Open[episode]
	sh.Lost = true
	d.Open[episode], d.changed = sh, true
}

// restore sets the share of an episode to spent, the sum of the calls in its step log. If the job
// was delivered again since the given delivery, restore does nothing.
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

// closeShare closes the share of an episode that no worker executes any longer. It does nothing if
// the job was delivered again since the given delivery, or if a call of the share is running.
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
	total, err := d.total(episodeKey(episode))
	return share{Spent: total.Spent, Delivery: total.Delivery}, err
}

// addClosed adds more to the sums of the closed shares of the run and the task, and sets the total
// of the episode to episodeTotal.
func (d *draft) addClosed(episode, task string, more float64, episodeTotal closedTotal) error {
	if more == 0 {
		return nil
	}
	taskTotal, err := d.total(taskKey(task))
	if err != nil {
		return err
	}
	d.Closed += more
	taskTotal.Spent += more
	for key, total := range map[string]closedTotal{taskKey(task): taskTotal, episodeKey(episode): episodeTotal} {
		d.totals[key], d.written[key] = total, true
	}
	return nil
}
