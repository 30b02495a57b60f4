package pipeline

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

// paper is a page and its leaves as the cluster stores them.
type paper struct {
	t      *testing.T
	page   []byte
	leaves map[string][]byte
}

func newPaper(t *testing.T, limit, taskLimit float64) *paper {
	p := &paper{t: t, page: []byte("{}"), leaves: map[string][]byte{}}
	if err := p.change(func(s *sheet) error {
		s.Limit, s.TaskLimit = limit, taskLimit
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *paper) sheet() *sheet {
	p.t.Helper()
	s, err := readSheet(p.page, func(name string) (l leaf, err error) {
		if body := p.leaves[name]; body != nil {
			err = json.Unmarshal(body, &l)
		}
		return l, err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// change writes what do makes of the page, and returns do's error.
func (p *paper) change(do func(*sheet) error) error {
	p.t.Helper()
	s := p.sheet()
	failed := do(s)
	page, leaves, err := s.texts("")
	if err != nil {
		p.t.Fatal(err)
	}
	p.page = page
	maps.Copy(p.leaves, leaves)
	return failed
}

// grant makes wishes and returns what they were told.
func (p *paper) grant(queue ...*wish) (answers map[*wish]error) {
	p.t.Helper()
	if err := p.change(func(s *sheet) (err error) {
		answers, _, _, err = s.grant(queue)
		return err
	}); err != nil {
		p.t.Fatal(err)
	}
	return answers
}

// is compares the sums of the page and of a task, and what an episode holds or left.
func (p *paper) is(when, task string, spent, reserved float64) {
	p.t.Helper()
	run, own, err := p.sheet().pots(task)
	for _, pot := range []pot{run, own} {
		if err != nil || math.Abs(pot.spent-spent) > rounding || math.Abs(pot.reserved-reserved) > rounding {
			p.t.Errorf("%s: %+v, %v; want $%.2f spent and $%.2f reserved", when, pot, err, spent, reserved)
		}
	}
}

func asking(call, episode string, delivery int, worst float64) *wish {
	return &wish{job: job(episode, "x"), want: share{Task: "x", Held: worst, Call: call, Delivery: delivery}, answer: make(chan error, 1)}
}

func restoring(episode string, delivery int, spent float64) *wish {
	return &wish{do: func(s *sheet) error { return s.restore(episode, "x", delivery, spent) }}
}

func shelving(episode string, delivery int) *wish {
	return &wish{do: func(s *sheet) error { return s.shelve(episode, delivery) }}
}

// A write whose answer is lost is made once more on a page that others have moved by
// then: nothing in it counts twice.
func TestWhatMayHaveBeenWrittenIsWrittenAgain(t *testing.T) {
	t.Parallel()
	a := job("a", "x")
	for name, c := range map[string]struct {
		before, queue   []*wish
		spent, reserved float64
	}{
		"a reservation":         {nil, []*wish{asking("1", "a", 1, 0.3)}, 0, 0.3},
		"a call after another":  {[]*wish{asking("1", "a", 1, 0.3)}, []*wish{settling(a, 1, "1", 0.2), asking("2", "a", 1, 0.3)}, 0.2, 0.3},
		"the end":               {[]*wish{asking("1", "a", 1, 0.3)}, []*wish{settling(a, 1, "1", 0.2), shelving("a", 1)}, 0.2, 0},
		"what another took up":  {[]*wish{asking("1", "a", 1, 0.3)}, []*wish{restoring("a", 2, 0.1), asking("2", "a", 2, 0.3)}, 0.1, 0.3},
		"staged":                {[]*wish{asking("1", "a", 1, 0.3)}, []*wish{restoring("a", 2, 0.1), shelving("a", 2)}, 0.1, 0},
		"from the shelf":        {[]*wish{restoring("a", 1, 0.2), shelving("a", 1)}, []*wish{asking("1", "a", 1, 0.3)}, 0.2, 0.3},
		"what nobody waits for": {nil, []*wish{asking("1", "a", 1, 0.3), settling(a, 1, "1", 0)}, 0, 0},
		"one that has to wait":  {nil, []*wish{asking("1", "a", 1, 0.6), asking("2", "b", 1, 0.6)}, 0, 0.6},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPaper(t, 1, 1)
			p.grant(c.before...)
			p.grant(c.queue...)
			p.grant(asking("9", "z", 1, 0.05)) // another process
			p.grant(settling(job("z", "x"), 1, "9", 0))
			for w, err := range p.grant(c.queue...) {
				if err != nil {
					t.Errorf("%+v: %v", *w, err)
				}
			}
			p.is("written twice", "x", c.spent, c.reserved)
		})
	}
}

// A reservation that was granted stays so when the money has come to its end since.
func TestAGrantedCallIsMadeWhenTheMoneyIsUsedUp(t *testing.T) {
	t.Parallel()
	p := newPaper(t, 1, 0)
	w := asking("1", "a", 1, 0.6)
	p.grant(w)
	late := asking("2", "b", 1, 1.2)
	if err := p.grant(late)[late]; !usedUp(err) {
		t.Error(err)
	}
	if err, answered := p.grant(w)[w]; !answered || err != nil {
		t.Errorf("%v, %v", err, answered)
	}
	p.is("granted", "x", 0, 0.6)
}

// Whoever had an episode before somebody who has put its share away changes nothing.
func TestTheShelfKnowsWhoWasLast(t *testing.T) {
	t.Parallel()
	t.Run("with what it read", func(t *testing.T) {
		p := newPaper(t, 10, 10)
		p.grant(restoring("a", 2, 0.2), restoring("a", 3, 0.2), asking("1", "a", 3, 1), settling(job("a", "x"), 3, "1", 0.7), shelving("a", 3))
		p.grant(restoring("a", 2, 0.2), shelving("a", 2))
		p.is("put away", "x", 0.9, 0)
		if l, err := p.sheet().leaf(episodeLeaf("a")); err != nil || math.Abs(l.Spent-0.9) > rounding || l.Delivery != 3 {
			t.Errorf("%+v, %v", l, err)
		}
	})
	t.Run("with what it waited for", func(t *testing.T) {
		p := newPaper(t, 10, 10)
		p.grant(restoring("a", 3, 0.9), shelving("a", 3))
		w := asking("1", "a", 2, 1)
		if err := p.grant(w)[w]; !errors.Is(err, engine.ErrLeaseLost) {
			t.Errorf("an owner of before: %v", err)
		}
		p.grant(restoring("a", 4, 0.9))
		p.is("taken up", "x", 0.9, 0)
	})
	t.Run("who comes after goes on", func(t *testing.T) {
		p := newPaper(t, 10, 10)
		p.grant(restoring("a", 1, 0.9), shelving("a", 1), asking("1", "a", 2, 1))
		p.is("asking", "x", 0.9, 1)
		p.grant(settling(job("a", "x"), 2, "1", 0.5), shelving("a", 2))
		p.is("put away again", "x", 1.4, 0)
	})
}

// Many episodes at once go to the page in parts, each of which takes a few leaves.
func TestWishesThatTakeManyLeavesAreMadeInParts(t *testing.T) {
	t.Parallel()
	const episodes = 3 * leavesAtOnce
	p := newPaper(t, 100, 100)
	var queue []*wish
	for n := range episodes {
		queue = append(queue, asking("1", fmt.Sprint("e", n), 1, 0.1))
	}
	for n, more := 0, true; more; n++ {
		if err := p.change(func(s *sheet) (err error) {
			var answers map[*wish]error
			answers, _, more, err = s.grant(queue)
			queue = slices.DeleteFunc(queue, func(w *wish) bool { _, made := answers[w]; return made })
			if s.reads > leavesAtOnce+2 || n > 3 {
				t.Fatalf("part %d reads %d leaves", n, s.reads)
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
