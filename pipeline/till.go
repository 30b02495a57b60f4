package pipeline

// A process's way to the budget of its run: what its episodes ask for and settle
// goes to the page together, so that processes contend for it and not episodes.

import (
	"context"
	"encoding/json"
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

// leavesAtOnce is how many leaves are read for one page.
const leavesAtOnce = 40

// till brings changes to the page, in their order. Its methods may be called from
// several goroutines.
type till struct {
	book  *engine.Book
	name  string        // of the process
	again time.Duration // money that others hold is waited for this long until the page is read again
	log   *slog.Logger
	wake  chan struct{}
	life  context.Context // of what it asks of the cluster
	stop  context.CancelFunc
	quit  chan struct{}
	wg    sync.WaitGroup

	mu    sync.Mutex
	queue []*wish

	known    *sheet // the goroutine's own: the page as it was last seen, nil: unknown
	revision uint64
	pages    int // written by this process
}

// wish is a change of the page. A reservation waits for its answer, and may wait
// for money; the others do neither.
type wish struct {
	do     func(*sheet) error
	job    schemas.Job
	want   share         // of a reservation
	answer chan error    // takes one; nil: no reservation
	gone   bool          // nobody waits for the answer any more
	made   chan struct{} // closed when the change is; nil: nobody waits for that
}

func openTill(ctx context.Context, book *engine.Book, name string, again time.Duration, log *slog.Logger) *till {
	t := &till{book: book, name: name, again: again, log: log, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	t.life, t.stop = context.WithCancel(context.WithoutCancel(ctx))
	t.wg.Go(t.serve)
	return t
}

// close brings what is left to the page, as far as the cluster answers within a
// short time. Nobody may wait for money any more.
func (t *till) close() {
	defer time.AfterFunc(closeTimeout, t.stop).Stop()
	close(t.quit)
	t.wg.Wait()
	if err := t.write(t.life); err != nil {
		t.log.Warn("settling with the budget", "error", err)
	}
}

// reserve sets worst aside for a call, waiting while others hold what is left. The
// call's name is for settle.
func (t *till) reserve(ctx context.Context, job schemas.Job, delivery int, worst float64) (call string, err error) {
	call = strconv.FormatUint(rand.Uint64(), 36)
	w := &wish{job: job, want: share{Task: job.TaskID, Held: worst, Call: call, Delivery: delivery}, answer: make(chan error, 1)}
	t.push(w)
	select {
	case err = <-w.answer:
		if err != nil || ctx.Err() == nil {
			return call, err
		}
	case <-ctx.Done():
	}
	t.mu.Lock()
	w.gone = true
	t.mu.Unlock()
	t.settle(job, delivery, call, 0) // it may be granted at this moment
	return call, fmt.Errorf("waiting for the budget: %w", context.Cause(ctx))
}

// settle turns what was set aside for a call of a job into what was paid.
func (t *till) settle(job schemas.Job, delivery int, call string, paid float64) {
	t.push(settling(job, delivery, call, paid))
}

func settling(job schemas.Job, delivery int, call string, paid float64) *wish {
	return &wish{do: func(s *sheet) error {
		s.settle(job.EpisodeID, delivery, call, paid)
		return nil
	}}
}

// restore makes a job's share what its log says.
func (t *till) restore(job schemas.Job, delivery int, spent float64) {
	t.push(&wish{do: func(s *sheet) error { return s.restore(job.EpisodeID, job.TaskID, delivery, spent) }})
}

// shelve puts a job's share away, as far as there is an answer before ctx ends.
func (t *till) shelve(ctx context.Context, job schemas.Job, delivery int) {
	w := &wish{do: func(s *sheet) error { return s.shelve(job.EpisodeID, delivery) }, made: make(chan struct{})}
	t.push(w)
	select {
	case <-w.made:
	case <-ctx.Done():
	}
}

func (t *till) push(w *wish) {
	t.mu.Lock()
	t.queue = append(t.queue, w)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *till) serve() {
	again := time.NewTimer(t.again)
	defer again.Stop()
	for {
		select {
		case <-t.quit:
			return
		case <-t.wake:
		case <-again.C:
		}
		if err := t.write(t.life); err != nil {
			t.log.Warn("reading or writing the budget", "error", err)
			t.refuse(err)
		}
		again.Reset(t.again + rand.N(t.again/2))
	}
}

// refuse tells those who wait for money that there is no answer. What the page may have
// set aside for them all the same is given back as soon as it can be.
func (t *till) refuse(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, w := range t.queue {
		if w.answer != nil {
			w.answer <- err
			t.queue[i] = settling(w.job, w.want.Delivery, w.want.Call, 0)
		}
	}
}

// write brings the queue to the page, as far as there is money.
func (t *till) write(ctx context.Context) error {
	for tries := 1; ; tries++ {
		t.mu.Lock()
		t.queue = slices.DeleteFunc(t.queue, func(w *wish) bool { return w.gone })
		queue := slices.Clone(t.queue)
		t.mu.Unlock()
		if len(queue) == 0 {
			return nil
		}
		if t.known == nil {
			var err error
			if t.known, t.revision, err = readPage(ctx, t.book); err != nil {
				return err
			}
		}
		next := t.known.copy()
		answers, all, more, err := next.grant(queue)
		if err != nil {
			t.known = nil
			return err
		}
		if !all && !next.changed { // nothing that is written will tell whether this was the page
			_, now, err := t.book.Page(ctx)
			if err != nil {
				return err
			}
			if now != t.revision {
				t.known = nil
				continue
			}
		}
		if next.changed {
			t.pages++
			revision, ok, err := turn(ctx, t.book, next, fmt.Sprintf("%s %d", t.name, t.pages), t.revision)
			if err != nil || !ok {
				t.known = nil
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
			t.known, t.revision = next, revision
		}
		t.mu.Lock()
		t.queue = slices.DeleteFunc(t.queue, func(w *wish) bool {
			err, answered := answers[w]
			if answered && w.answer != nil {
				w.answer <- err
			}
			if answered && w.made != nil {
				close(w.made)
			}
			return answered
		})
		t.mu.Unlock()
		if !more {
			return nil
		}
		tries = 0
	}
}

// grant makes the wishes in their order. Those without an answer wait; all tells
// that none does, and none is refused. Where they take many leaves, which is time in
// which others write the page, the rest is for the next one: more.
func (s *sheet) grant(queue []*wish) (answers map[*wish]error, all, more bool, err error) {
	answers, all = map[*wish]error{}, true
	before := &lines{tasks: map[string]bool{}}
	for _, w := range queue {
		if s.changed && s.reads >= leavesAtOnce {
			return answers, false, true, nil
		}
		if w.answer == nil {
			if err := w.do(s); err != nil {
				return nil, false, false, err
			}
			answers[w] = nil
			continue
		}
		ok, err := s.reserve(w.job.EpisodeID, w.want, before)
		if ok || err != nil {
			answers[w] = err
		}
		all = all && ok
	}
	return answers, all, false, nil
}

// readPage reads the page of a run as it is now.
func readPage(ctx context.Context, book *engine.Book) (*sheet, uint64, error) {
	body, revision, err := book.Page(ctx)
	if err != nil {
		return nil, 0, err
	}
	if revision == 0 {
		body = []byte("{}")
	}
	s, err := readSheet(body, func(name string) (l leaf, err error) {
		body, err := book.Leaf(ctx, name)
		if err == nil && body != nil {
			err = json.Unmarshal(body, &l)
		}
		if err != nil {
			err = fmt.Errorf("reading the budget of the run: %w", err)
		}
		return l, err
	})
	return s, revision, err
}

// turn replaces the page, unless another process did.
func turn(ctx context.Context, book *engine.Book, s *sheet, by string, revision uint64) (uint64, bool, error) {
	page, leaves, err := s.texts(by)
	if err != nil {
		return 0, false, err
	}
	return book.Turn(ctx, page, revision, leaves)
}
