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

// maxReads is how many totals a client reads for one write of the state.
const maxReads = 40

// closeTimeout bounds what Client.Close writes.
const closeTimeout = 30 * time.Second

// Client batches the reservations and settlements of one process into changes of the shared
// state, so that processes compete for it and not episodes. Its methods may be called from
// several goroutines.
type Client struct {
	store *engine.BudgetStore
	name  string        // of the process
	poll  time.Duration // how long a reservation waits until the state is read again
	log   *slog.Logger
	wake  chan struct{}
	ctx   context.Context // of the calls to the cluster
	stop  context.CancelFunc
	quit  chan struct{}
	wg    sync.WaitGroup

	mu    sync.Mutex
	queue []*request

	// Only serve uses these, and Close after serve has ended.
	known    *draft // the state as it was last seen; nil: unknown
	revision uint64
	writes   int
}

// request is a change of the state. A reservation waits for its answer, and may wait for
// money. Other requests wait for neither.
type request struct {
	do        func(*draft) error
	job       schemas.Job
	want      share         // of a reservation
	answer    chan error    // has room for one; nil: no reservation
	abandoned bool          // the caller no longer waits for the answer
	done      chan struct{} // closed once the state is written; nil: no caller waits for that
}

// NewClient returns a client for a process, which name identifies. While a reservation waits
// for money, the client reads the state again after poll. ctx provides values, not
// cancellation.
func NewClient(ctx context.Context, store *engine.BudgetStore, name string, poll time.Duration, log *slog.Logger) *Client {
	c := &Client{store: store, name: name, poll: poll, log: log, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	c.ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.wg.Go(c.serve)
	return c
}

// Close writes the remaining changes, as far as the cluster answers within closeTimeout. No
// reservation may be waiting.
func (c *Client) Close() {
	defer time.AfterFunc(closeTimeout, c.stop).Stop()
	close(c.quit)
	c.wg.Wait()
	if err := c.write(c.ctx); err != nil {
		c.log.Warn("settling with the budget", "error", err)
	}
}

// Reserve sets worst USD aside for a call of a job's delivery. It waits while others hold what
// is left. Settle takes the call's name.
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
	c.Settle(job, delivery, call, 0) // the reservation may be granted at this moment
	return call, fmt.Errorf("waiting for the budget: %w", context.Cause(ctx))
}

// Settle turns what a call of a job's delivery has reserved into what was paid.
func (c *Client) Settle(job schemas.Job, delivery int, call string, paid float64) {
	c.push(settlement(job, delivery, call, paid))
}

func settlement(job schemas.Job, delivery int, call string, paid float64) *request {
	return &request{do: func(d *draft) error {
		d.settle(job.EpisodeID, delivery, call, paid)
		return nil
	}}
}

// Restore makes the share of a job what its step log says.
func (c *Client) Restore(job schemas.Job, delivery int, spent float64) {
	c.push(&request{do: func(d *draft) error { return d.restore(job.EpisodeID, job.TaskID, delivery, spent) }})
}

// CloseShare closes the share of a job that this process no longer executes. It waits until
// that is written or ctx ends.
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

func (c *Client) serve() {
	again := time.NewTimer(c.poll)
	defer again.Stop()
	for {
		select {
		case <-c.quit:
			return
		case <-c.wake:
		case <-again.C:
		}
		if err := c.write(c.ctx); err != nil {
			c.log.Warn("reading or writing the budget", "error", err)
			c.refuse(err)
		}
		again.Reset(c.poll + rand.N(c.poll/2))
	}
}

// refuse answers all waiting reservations with err. The write may have succeeded without an
// answer, so that what it reserved for them is settled as soon as possible.
func (c *Client) refuse(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, r := range c.queue {
		if r.answer != nil {
			r.answer <- err
			c.queue[i] = settlement(r.job, r.want.Delivery, r.want.Call, 0)
		}
	}
}

// write applies the queue to the state, as far as there is money.
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
		answers, all, more, err := next.apply(queue)
		if err != nil {
			c.known = nil
			return err
		}
		if !all && !next.changed { // no write will tell whether this state is current
			_, now, err := c.store.State(ctx)
			if err != nil {
				return err
			}
			if now != c.revision {
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
			if !ok { // another process was faster
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

// deliver sends the answers and removes their requests from the queue.
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

// apply carries out requests in their order. Those without an answer have to wait; all says
// that none has to and that none is refused. If the requests take many totals, whose reading
// takes time in which other processes write the state, apply stops early and returns more.
func (d *draft) apply(queue []*request) (answers map[*request]error, all, more bool, err error) {
	answers, all = map[*request]error{}, true
	before := &waitList{tasks: map[string]bool{}}
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
		ok, err := d.reserve(r.job.EpisodeID, r.want, before)
		if ok || err != nil {
			answers[r] = err
		}
		all = all && ok
	}
	return answers, all, false, nil
}
