package pipeline

// The coordinator's part in the budget of its run: it sets the limits, says whose
// calls are lost, and ends the run when the money is used up.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/engine"
)

// mendAtOnce is how many shares a coordinator mends with one write of the page.
const mendAtOnce = 20

// fund opens the budget of the run, or makes one where there is a limit: from the
// books of the coordinator, which hold what was paid before. entries are the jobs'
// records, read before those books were made.
func (f *fleet) fund(ctx context.Context, entries []engine.Entry) error {
	r := f.r
	limited := r.cfg.MaxCost > 0 || r.cfg.TaskCost > 0
	book, err := r.engine.OpenBook(ctx, limited)
	if err != nil || book == nil {
		return err
	}
	for {
		s, revision, err := readPage(ctx, book)
		if err != nil {
			return err
		}
		if revision == 0 && !limited { // nobody has made a page: it was refused
			return nil
		}
		f.book = book
		more := false
		if revision == 0 {
			err = f.found(ctx, s)
		} else {
			more, err = f.mend(s, entries)
		}
		if err != nil {
			return err
		}
		if !more {
			s.Limit, s.TaskLimit, s.Over = r.cfg.MaxCost, r.cfg.TaskCost, ""
		}
		if ok, err := f.turn(ctx, s, revision); ok && !more || err != nil {
			return err
		}
	}
}

func (f *fleet) turn(ctx context.Context, s *sheet, revision uint64) (bool, error) {
	f.pages++
	_, ok, err := turn(ctx, f.book, s, fmt.Sprintf("%s %d", f.name, f.pages), revision)
	return ok, err
}

// found makes the first page. No worker may be at work that knows of no budget.
func (f *fleet) found(ctx context.Context, s *sheet) error {
	r := f.r
	workers, err := r.deps.Cluster.Workers(ctx)
	if err != nil {
		return err
	}
	for _, w := range workers {
		if w.RunID == r.info.RunID && w.Alive(w.Seen) && time.Since(w.Seen) < r.cfg.Lease+30*time.Second {
			return &StopError{Code: 2, Err: fmt.Errorf("worker %s may still work on run %s, which was started without limits.total_cost and limits.task_cost: what it spends would not be counted", w.Name, r.info.RunID),
				Remedy: fmt.Sprintf("end that worker, or start the run without these limits and interrupt it; %s after it was last heard of a worker is taken for gone", r.cfg.Lease+30*time.Second)}
		}
	}
	run, tasks, episodes := r.ledger.books()
	s.Shelved = run
	leaves := map[string][]byte{}
	put := func(name string, v float64) {
		if v != 0 {
			leaves[name], err = json.Marshal(leaf{Spent: v})
		}
	}
	for id, v := range tasks {
		put(taskLeaf(id), v)
	}
	for id, v := range episodes {
		put(episodeLeaf(id), v)
	}
	if err != nil {
		return fmt.Errorf("encoding the budget: %w", err)
	}
	return f.book.Put(ctx, leaves)
}

// mend makes the shares of episodes that are staged or in nobody's hands what the
// books say: not all at once, each takes time in which workers write the page, too.
func (f *fleet) mend(s *sheet, entries []engine.Entry) (more bool, err error) {
	r := f.r
	_, _, spent := r.ledger.books()
	known := map[string]engine.Entry{}
	for _, e := range entries {
		known[e.ID] = e
	}
	mended := 0
	for id, sh := range maps.Clone(s.Open) {
		e := known[id]
		held := e.Delivery < sh.Delivery || e.Delivery == sh.Delivery && e.State == engine.Running
		if _, staged := r.episodes[id]; held && !staged {
			continue
		}
		if mended++; mended > mendAtOnce {
			return true, nil
		}
		if err := errors.Join(s.restore(id, sh.Task, sh.Delivery, spent[id]), s.shelve(id, sh.Delivery)); err != nil {
			return false, err
		}
	}
	return false, nil
}

// audit looks at the page until ctx ends: what is held for calls whose worker has lost
// its job is lost, and where the money is used up the run ends.
func (f *fleet) audit(ctx context.Context) {
	tick := time.NewTicker(f.r.cfg.LookEvery / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		why, err := f.look(ctx)
		if err != nil && ctx.Err() == nil {
			f.r.deps.Log.Warn("looking at the budget", "error", err)
		}
		if why != "" {
			f.r.mu.Lock()
			if f.r.fatal == nil {
				f.r.fatal = overBudget(why)
			}
			f.r.mu.Unlock()
			close(f.poor)
			return
		}
	}
}

func (f *fleet) look(ctx context.Context) (over string, err error) {
	s, revision, err := readPage(ctx, f.book)
	if err != nil {
		return "", err
	}
	for id, sh := range s.Open {
		if sh.Held > 0 && !sh.Lost && f.forsaken(id, sh.Delivery) {
			s.lose(id)
		}
	}
	if s.changed {
		_, err = f.turn(ctx, s, revision) // if another was faster, at the next look
	}
	return s.Over, err
}

// forsaken tells that a delivery of a job is in nobody's hands any more.
func (f *fleet) forsaken(id string, delivery int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, known := f.hands[id]
	return known && (h.times > delivery || h.times == delivery && !h.running)
}

// Budget is what a run on a cluster has spent, in USD, as its workers agree on it.
type Budget struct {
	LimitUSD float64 `json:"limit_usd"` // limits.total_cost; 0: none
	SpentUSD float64 `json:"spent_usd"` // LostUSD included
	LostUSD  float64 `json:"lost_usd"`  // worst case of calls whose worker is gone, until a log says more
	// ReservedUSD is the worst case of calls under way: SpentUSD + ReservedUSD is
	// never more than LimitUSD.
	ReservedUSD float64 `json:"reserved_usd"`
	Over        bool    `json:"used_up"`
}

func readBudget(ctx context.Context, conn *engine.Conn, runID string) (*Budget, error) {
	book, err := conn.Book(ctx, runID)
	if err != nil || book == nil {
		return nil, err
	}
	s, revision, err := readPage(ctx, book)
	if err != nil || revision == 0 {
		return nil, err
	}
	b := &Budget{LimitUSD: s.Limit, SpentUSD: s.Shelved, Over: s.Over != ""}
	for _, sh := range s.Open {
		b.SpentUSD += sh.Spent
		if sh.Lost {
			b.LostUSD += sh.Held
		} else {
			b.ReservedUSD += sh.Held
		}
	}
	b.SpentUSD += b.LostUSD
	return b, nil
}
