package budget

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/engine"
)

// memoryStore holds a state and its totals in memory, encoded as on a cluster.
type memoryStore struct {
	t      *testing.T
	state  []byte
	totals map[string][]byte
}

func newMemoryStore(t *testing.T, limit, taskLimit float64) *memoryStore {
	p := &memoryStore{t: t, state: []byte("{}"), totals: map[string][]byte{}}
	if err := p.change(func(s *draft) error {
		s.Limit, s.TaskLimit = limit, taskLimit
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *memoryStore) draft() *draft {
	p.t.Helper()
	s, err := newDraft(p.state, func(name string) (total closedTotal, err error) {
		if body := p.totals[name]; body != nil {
			err = json.Unmarshal(body, &total)
		}
		return total, err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// change applies do to the state and returns the error of do.
func (p *memoryStore) change(do func(*draft) error) error {
	p.t.Helper()
	s := p.draft()
	doErr := do(s)
	state, totals, err := s.encode("")
	if err != nil {
		p.t.Fatal(err)
	}
	p.state = state
	maps.Copy(p.totals, totals)
	return doErr
}

// apply applies requests and returns their answers.
func (p *memoryStore) apply(queue ...*request) (answers map[*request]error) {
	p.t.Helper()
	if err := p.change(func(s *draft) (err error) {
		answers, _, _, err = s.apply(queue)
		return err
	}); err != nil {
		p.t.Fatal(err)
	}
	return answers
}

// check compares the amounts that the run and a task have spent and reserved.
func (p *memoryStore) check(when, task string, spent, reserved float64) {
	p.t.Helper()
	run, taskLimit, err := p.draft().limits(task)
	for _, lim := range []limit{run, taskLimit} {
		if err != nil || math.Abs(lim.spent-spent) > rounding || math.Abs(lim.reserved-reserved) > rounding {
			p.t.Errorf("%s: %+v, %v; want $%.2f spent and $%.2f reserved", when, lim, err, spent, reserved)
		}
	}
}

func reservation(call, episode string, delivery int, worst float64) *request {
	return &request{job: job(episode, "x"), want: share{Task: "x", Held: worst, Call: call, Delivery: delivery}, answer: make(chan error, 1)}
}

func restoration(episode string, delivery int, spent float64) *request {
	return &request{do: func(s *draft) error { return s.restore(episode, "x", delivery, spent) }}
}

func closure(episode string, delivery int) *request {
	return &request{do: func(s *draft) error { return s.closeShare(episode, delivery) }}
}

// If the answer to a write is lost, the client repeats the requests on a state that other processes
// have changed since. Nothing counts twice.
func TestRepeatedRequestsCountOnce(t *testing.T) {
	t.Parallel()
	a := job("a", "x")
	for name, c := range map[string]struct {
		before, queue   []*request
		spent, reserved float64
	}{
		"reservation":           {nil, []*request{reservation("1", "a", 1, 0.3)}, 0, 0.3},
		"second call":           {[]*request{reservation("1", "a", 1, 0.3)}, []*request{settlement(a, 1, "1", 0.2), reservation("2", "a", 1, 0.3)}, 0.2, 0.3},
		"end of the episode":    {[]*request{reservation("1", "a", 1, 0.3)}, []*request{settlement(a, 1, "1", 0.2), closure("a", 1)}, 0.2, 0},
		"continued episode":     {[]*request{reservation("1", "a", 1, 0.3)}, []*request{restoration("a", 2, 0.1), reservation("2", "a", 2, 0.3)}, 0.1, 0.3},
		"staged":                {[]*request{reservation("1", "a", 1, 0.3)}, []*request{restoration("a", 2, 0.1), closure("a", 2)}, 0.1, 0},
		"from a closed share":   {[]*request{restoration("a", 1, 0.2), closure("a", 1)}, []*request{reservation("1", "a", 1, 0.3)}, 0.2, 0.3},
		"abandoned reservation": {nil, []*request{reservation("1", "a", 1, 0.3), settlement(a, 1, "1", 0)}, 0, 0},
		"waiting reservation":   {nil, []*request{reservation("1", "a", 1, 0.6), reservation("2", "b", 1, 0.6)}, 0, 0.6},
	} {
		t.Run(name, func(t *testing.T) {
			p := newMemoryStore(t, 1, 1)
			p.apply(c.before...)
			p.apply(c.queue...)
			p.apply(reservation("9", "z", 1, 0.05)) // another process
			p.apply(settlement(job("z", "x"), 1, "9", 0))
			for w, err := range p.apply(c.queue...) {
				if err != nil {
					t.Errorf("%+v: %v", *w, err)
				}
			}
			p.check("written twice", "x", c.spent, c.reserved)
		})
	}
}

// A granted reservation stays valid after the budget is used up.
func TestGrantedReservationStaysValid(t *testing.T) {
	t.Parallel()
	p := newMemoryStore(t, 1, 0)
	w := reservation("1", "a", 1, 0.6)
	p.apply(w)
	late := reservation("2", "b", 1, 1.2)
	if err := p.apply(late)[late]; !Exhausted(err) {
		t.Error(err)
	}
	if err, answered := p.apply(w)[w]; !answered || err != nil {
		t.Errorf("%v, %v", err, answered)
	}
	p.check("granted", "x", 0, 0.6)
}

// A closed share keeps the number of its last delivery, so that workers with an earlier delivery
// change nothing.
func TestClosedShareIgnoresEarlierDeliveries(t *testing.T) {
	t.Parallel()
	t.Run("earlier delivery restores and closes", func(t *testing.T) {
		p := newMemoryStore(t, 10, 10)
		p.apply(restoration("a", 2, 0.2), restoration("a", 3, 0.2), reservation("1", "a", 3, 1), settlement(job("a", "x"), 3, "1", 0.7), closure("a", 3))
		p.apply(restoration("a", 2, 0.2), closure("a", 2))
		p.check("closed", "x", 0.9, 0)
		if l, err := p.draft().total(episodeKey("a")); err != nil || math.Abs(l.Spent-0.9) > rounding || l.Delivery != 3 {
			t.Errorf("%+v, %v", l, err)
		}
	})
	t.Run("earlier delivery reserves", func(t *testing.T) {
		p := newMemoryStore(t, 10, 10)
		p.apply(restoration("a", 3, 0.9), closure("a", 3))
		w := reservation("1", "a", 2, 1)
		if err := p.apply(w)[w]; !errors.Is(err, engine.ErrLeaseLost) {
			t.Errorf("reserving with an earlier delivery: %v", err)
		}
		p.apply(restoration("a", 4, 0.9))
		p.check("restored", "x", 0.9, 0)
	})
	t.Run("later delivery reserves", func(t *testing.T) {
		p := newMemoryStore(t, 10, 10)
		p.apply(restoration("a", 1, 0.9), closure("a", 1), reservation("1", "a", 2, 1))
		p.check("reserved", "x", 0.9, 1)
		p.apply(settlement(job("a", "x"), 2, "1", 0.5), closure("a", 2))
		p.check("closed again", "x", 1.4, 0)
	})
}

// The requests of many episodes are applied in parts, each of which reads only a few totals.
func TestApplyStopsAfterManyReads(t *testing.T) {
	t.Parallel()
	const episodes = 3 * maxReads
	p := newMemoryStore(t, 100, 100)
	var queue []*request
	for n := range episodes {
		queue = append(queue, reservation("1", fmt.Sprint("e", n), 1, 0.1))
	}
	for n, more := 0, true; more; n++ {
		if err := p.change(func(s *draft) (err error) {
			var answers map[*request]error
			answers, _, more, err = s.apply(queue)
			queue = slices.DeleteFunc(queue, func(w *request) bool { _, made := answers[w]; return made })
			if s.reads > maxReads+2 || n > 3 {
				t.Fatalf("part %d reads %d totals", n, s.reads)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if len(queue) > 0 {
		t.Errorf("%d requests were not answered", len(queue))
	}
	p.check("in parts", "x", 0, episodes*0.1)
}
