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

// memoryStore is a state and its totals as the cluster stores them.
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

// change applies do to the state, and returns its error.
func (p *memoryStore) change(do func(*draft) error) error {
	p.t.Helper()
	s := p.draft()
	failed := do(s)
	state, totals, err := s.encode("")
	if err != nil {
		p.t.Fatal(err)
	}
	p.state = state
	maps.Copy(p.totals, totals)
	return failed
}

// grant applies requests and returns their answers.
func (p *memoryStore) grant(queue ...*request) (answers map[*request]error) {
	p.t.Helper()
	if err := p.change(func(s *draft) (err error) {
		answers, _, _, err = s.apply(queue)
		return err
	}); err != nil {
		p.t.Fatal(err)
	}
	return answers
}

// is compares what the run and a task have spent and reserved.
func (p *memoryStore) is(when, task string, spent, reserved float64) {
	p.t.Helper()
	run, own, err := p.draft().limits(task)
	for _, of := range []limit{run, own} {
		if err != nil || math.Abs(of.spent-spent) > rounding || math.Abs(of.reserved-reserved) > rounding {
			p.t.Errorf("%s: %+v, %v; want $%.2f spent and $%.2f reserved", when, of, err, spent, reserved)
		}
	}
}

func asking(call, episode string, delivery int, worst float64) *request {
	return &request{job: job(episode, "x"), want: share{Task: "x", Held: worst, Call: call, Delivery: delivery}, answer: make(chan error, 1)}
}

func restoring(episode string, delivery int, spent float64) *request {
	return &request{do: func(s *draft) error { return s.restore(episode, "x", delivery, spent) }}
}

func closing(episode string, delivery int) *request {
	return &request{do: func(s *draft) error { return s.closeShare(episode, delivery) }}
}

// A write whose answer is lost is repeated on a state that other processes have changed since:
// nothing in it counts twice.
func TestWritesWithLostAnswersAreRepeated(t *testing.T) {
	t.Parallel()
	a := job("a", "x")
	for name, c := range map[string]struct {
		before, queue   []*request
		spent, reserved float64
	}{
		"a reservation":         {nil, []*request{asking("1", "a", 1, 0.3)}, 0, 0.3},
		"a call after another":  {[]*request{asking("1", "a", 1, 0.3)}, []*request{settlement(a, 1, "1", 0.2), asking("2", "a", 1, 0.3)}, 0.2, 0.3},
		"the end":               {[]*request{asking("1", "a", 1, 0.3)}, []*request{settlement(a, 1, "1", 0.2), closing("a", 1)}, 0.2, 0},
		"what another took up":  {[]*request{asking("1", "a", 1, 0.3)}, []*request{restoring("a", 2, 0.1), asking("2", "a", 2, 0.3)}, 0.1, 0.3},
		"staged":                {[]*request{asking("1", "a", 1, 0.3)}, []*request{restoring("a", 2, 0.1), closing("a", 2)}, 0.1, 0},
		"from a closed share":   {[]*request{restoring("a", 1, 0.2), closing("a", 1)}, []*request{asking("1", "a", 1, 0.3)}, 0.2, 0.3},
		"what nobody waits for": {nil, []*request{asking("1", "a", 1, 0.3), settlement(a, 1, "1", 0)}, 0, 0},
		"one that has to wait":  {nil, []*request{asking("1", "a", 1, 0.6), asking("2", "b", 1, 0.6)}, 0, 0.6},
	} {
		t.Run(name, func(t *testing.T) {
			p := newMemoryStore(t, 1, 1)
			p.grant(c.before...)
			p.grant(c.queue...)
			p.grant(asking("9", "z", 1, 0.05)) // another process
			p.grant(settlement(job("z", "x"), 1, "9", 0))
			for w, err := range p.grant(c.queue...) {
				if err != nil {
					t.Errorf("%+v: %v", *w, err)
				}
			}
			p.is("written twice", "x", c.spent, c.reserved)
		})
	}
}

// A granted reservation stays valid after the budget is used up.
func TestAGrantedReservationOutlivesTheBudget(t *testing.T) {
	t.Parallel()
	p := newMemoryStore(t, 1, 0)
	w := asking("1", "a", 1, 0.6)
	p.grant(w)
	late := asking("2", "b", 1, 1.2)
	if err := p.grant(late)[late]; !Exhausted(err) {
		t.Error(err)
	}
	if err, answered := p.grant(w)[w]; !answered || err != nil {
		t.Errorf("%v, %v", err, answered)
	}
	p.is("granted", "x", 0, 0.6)
}

// A worker with an earlier delivery than that of a closed share changes nothing.
func TestClosedSharesKnowTheLastDelivery(t *testing.T) {
	t.Parallel()
	t.Run("with what it read", func(t *testing.T) {
		p := newMemoryStore(t, 10, 10)
		p.grant(restoring("a", 2, 0.2), restoring("a", 3, 0.2), asking("1", "a", 3, 1), settlement(job("a", "x"), 3, "1", 0.7), closing("a", 3))
		p.grant(restoring("a", 2, 0.2), closing("a", 2))
		p.is("put away", "x", 0.9, 0)
		if l, err := p.draft().total(episodeKey("a")); err != nil || math.Abs(l.Spent-0.9) > rounding || l.Delivery != 3 {
			t.Errorf("%+v, %v", l, err)
		}
	})
	t.Run("with what it waited for", func(t *testing.T) {
		p := newMemoryStore(t, 10, 10)
		p.grant(restoring("a", 3, 0.9), closing("a", 3))
		w := asking("1", "a", 2, 1)
		if err := p.grant(w)[w]; !errors.Is(err, engine.ErrLeaseLost) {
			t.Errorf("an owner of before: %v", err)
		}
		p.grant(restoring("a", 4, 0.9))
		p.is("taken up", "x", 0.9, 0)
	})
	t.Run("who comes after goes on", func(t *testing.T) {
		p := newMemoryStore(t, 10, 10)
		p.grant(restoring("a", 1, 0.9), closing("a", 1), asking("1", "a", 2, 1))
		p.is("asking", "x", 0.9, 1)
		p.grant(settlement(job("a", "x"), 2, "1", 0.5), closing("a", 2))
		p.is("put away again", "x", 1.4, 0)
	})
}

// The requests of many episodes are applied in parts, each of which reads a few totals.
func TestRequestsThatReadManyTotalsAreAppliedInParts(t *testing.T) {
	t.Parallel()
	const episodes = 3 * maxReads
	p := newMemoryStore(t, 100, 100)
	var queue []*request
	for n := range episodes {
		queue = append(queue, asking("1", fmt.Sprint("e", n), 1, 0.1))
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
		t.Errorf("%d are left", len(queue))
	}
	p.is("in parts", "x", 0, episodes*0.1)
}
