package budget

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

// maxReads is the number of totals of tasks and episodes (see draft) that a client reads before it
// writes the state.
const maxReads = 40

// closeTimeout bounds Client.Close.
const closeTimeout = 30 * time.Second

// Client batches the reservations and settlements of one process into few changes of the shared
// state, so that only processes, and not all their episodes, compete for writing it. Its methods may be called
// from several goroutines.
type Client struct {
	store *engine.BudgetStore
	name  string        // of the process
	poll  time.Duration // interval at which the state is read while a reservation waits
	log   *slog.Logger
	wake  chan struct{}
	ctx   context.Context // of the requests to the cluster
	stop  context.CancelFunc
	quit  chan struct{}
	wg    sync.WaitGroup

	mu    sync.Mutex
	queue []*request

	// Only serve uses these fields, and Close after serve has ended.
	known    *draft // the last known state, or nil
	revision uint64
	writes   int
}

// request is a change of the state: a reservation, which may have to wait until the budget has
// room, or any other change, which is made at once.
type request struct {
	do        func(*draft) error // nil for a reservation
	job       schemas.Job
	want      share         // of a reservation
	answer    chan error    // of a reservation; buffers one answer
	abandoned bool          // the caller no longer waits for the answer
	done      chan struct{} // closed once the state is written; nil if no caller waits for that
}

// NewClient returns a client for the process with the given unique name. While a reservation
// waits, the client reads the state again after poll. Canceling ctx does not stop the client;
// Close does.
func NewClient(ctx context.Context, store *engine.BudgetStore, name string, poll time.Duration, log *slog.Logger) *Client {
	c := &Client{store: store, name: name, poll: poll, log: log, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	c.ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.wg.Go(c.serve)
	return c
}

// Close stops the client and writes the remaining changes, if the cluster answers within
// closeTimeout. No reservation may be waiting.
func (c *Client) Close() {
	defer time.AfterFunc(closeTimeout, c.stop).Stop()
	close(c.quit)
	c.wg.Wait()
	if err := c.write(c.ctx); err != nil {
		c.log.Warn("writing the last changes of the budget", "error", err)
	}
}

// Reserve reserves worst USD for a model call of a job's delivery. It waits while the reservations
// of other calls take up the rest of the budget. call identifies the reservation for Settle.
func (c *Client) Reserve(ctx context.Context, job schemas.Job, delivery int, worst float64) (call string, err error) {
	call = strconv.FormatUint(rand.Uint64(), 36)
	r := &request{job: job, want: share{Task: job.TaskID, Held: worst, Call: call, Delivery: delivery}, answer: make(chan error, 1)}
	c.push(r)
	select {
	case err = <-r.answer:
		if err != nil || ctx.Err() == nil {
			return call, err
		}
	case <-ctx.Done():
	}
	c.mu.Lock()
	r.abandoned = true
	c.mu.Unlock()
	c.Settle(job, delivery, call, 0) // in case the reservation is granted at this moment
	return call, fmt.Errorf("waiting for the budget: %w", context.Cause(ctx))
}

// Settle replaces the reservation of a call with the amount that was paid.
func (c *Client) Settle(job schemas.Job, delivery int, call string, paid float64) {
	c.push(settlement(job, delivery, call, paid))
}

func settlement(job schemas.Job, delivery int, call string, paid float64) *request {
	return &request{do: func(d *draft) error {
		d.settle(job.EpisodeID, delivery, call, paid)
		return nil
	}}
}

// Restore sets the share of a job to spent, the sum of the calls in its step log.
func (c *Client) Restore(job schemas.Job, delivery int, spent float64) {
	c.push(&request{do: func(d *draft) error { return d.restore(job.EpisodeID, job.TaskID, delivery, spent) }})
}

// CloseShare closes the share of a job that this process no longer executes. It waits until the
// change is written or ctx ends.
func (c *Client) CloseShare(ctx context.Context, job schemas.Job, delivery int) {
	r := &request{do: func(d *draft) error { return d.closeShare(job.EpisodeID, delivery) }, done: make(chan struct{})}
	c.push(r)
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}

func (c *Client) push(r *request) {
	c.mu.Lock()
	c.queue = append(c.queue, r)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// serve writes the queue whenever a request arrives and, for waiting reservations, after poll.
func (c *Client) serve() {
	timer := time.NewTimer(c.poll)
	defer timer.Stop()
	for {
		select {
		case <-c.quit:
			return
		case <-c.wake:
		case <-timer.C:
		}
		if err := c.write(c.ctx); err != nil {
			c.log.Warn("reading or writing the budget", "error", err)
			c.failReservations(err)
		}
		timer.Reset(c.poll + rand.N(c.poll/2))
	}
}

// failReservations answers all waiting reservations with err. The write that failed may have
// succeeded without an answer, so failReservations also queues the release of what it reserved.
func (c *Client) failReservations(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, r := range c.queue {
		if r.answer != nil {
			r.answer <- err
			c.queue[i] = settlement(r.job, r.want.Delivery, r.want.Call, 0)
		}
	}
}

// write applies the queue to the state. Reservations for which the budget has no room yet stay in
// the queue.
func (c *Client) write(ctx context.Context) error {
	for tries := 1; ; tries++ {
		c.mu.Lock()
		c.queue = slices.DeleteFunc(c.queue, func(r *request) bool { return r.abandoned })
		queue := slices.Clone(c.queue)
		c.mu.Unlock()
		if len(queue) == 0 {
			return nil
		}
		if c.known == nil {
			var err error
			if c.known, c.revision, err = readState(ctx, c.store); err != nil {
				return err
			}
		}
		next := c.known.clone()
		answers, allGranted, more, err := next.apply(queue)
		if err != nil {
			c.known = nil
			return err
		}
		if !allGranted && !next.changed { // there is no write that would fail if the known state is outdated
			_, current, err := c.store.State(ctx)
			if err != nil {
				return err
			}
			if current != c.revision {
				c.known = nil
				continue
			}
		}
		if next.changed {
			c.writes++
			revision, ok, err := replaceState(ctx, c.store, next, fmt.Sprintf("%s %d", c.name, c.writes), c.revision)
			if err != nil || !ok {
				c.known = nil
			}
			if err != nil {
				return err
			}
			if !ok { // another process wrote the state first
				if err := engine.Pause(ctx, rand.N(time.Duration(min(tries, 10))*5*time.Millisecond)); err != nil {
					return err
				}
				continue
			}
			c.known, c.revision = next, revision
		}
		c.deliver(answers)
		if !more {
			return nil
		}
		tries = 0
	}
}

// deliver sends the answers to the callers and removes their requests from the queue.
func (c *Client) deliver(answers map[*request]error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = slices.DeleteFunc(c.queue, func(r *request) bool {
		err, answered := answers[r]
		if answered && r.answer != nil {
			r.answer <- err
		}
		if answered && r.done != nil {
			close(r.done)
		}
		return answered
	})
}

// apply applies requests to the draft in their order. Requests without an entry in answers have to
// wait. allGranted is true if every reservation was granted. apply stops after reading maxReads
// totals and then returns more: reading takes time, in which other processes change the state.
func (d *draft) apply(queue []*request) (answers map[*request]error, allGranted, more bool, err error) {
	answers, allGranted = map[*request]error{}, true
	waiting := &waitList{tasks: map[string]bool{}}
	for _, r := range queue {
		if d.changed && d.reads >= maxReads {
			return answers, false, true, nil
		}
		if r.answer == nil {
			if err := r.do(d); err != nil {
				return nil, false, false, err
			}
			answers[r] = nil
			continue
		}
		ok, err := d.reserve(r.job.EpisodeID, r.want, waiting)
		if ok || err != nil {
			answers[r] = err
		}
		allGranted = allGranted && ok
	}
	return answers, allGranted, false, nil
}
