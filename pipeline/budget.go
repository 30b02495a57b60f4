package pipeline

// The money of a run on a cluster. Its workers are processes of their own, so that
// what is spent and set aside stands on one page, which each of them moves by
// compare-and-swap: no call is made that the page has no room for. Step logs remain the
// truth about what was paid: whoever takes up an episode makes its share what
// its log says.

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/pipeline/engine"
)

// budget is the page: all amounts are USD.
type budget struct {
	Limit     float64 `json:"limit"`      // of the run; 0: none
	TaskLimit float64 `json:"task_limit"` // of all attempts at one task; 0: none
	// Shelved is what episodes have spent that are in nobody's hands. What of it is of
	// an episode, and of a task, stands on leaves.
	Shelved float64          `json:"shelved"`
	Open    map[string]share `json:"open"`           // of episodes in a worker's hands
	Over    string           `json:"over,omitempty"` // why no call is begun any more
	By      string           `json:"by"`             // who wrote this page, and its number: no two are equal
}

// share is that of an episode.
type share struct {
	Task  string  `json:"task"`
	Spent float64 `json:"spent"`
	// Held is set aside for a call that is under way, Call: no two have the same.
	Held float64 `json:"held,omitempty"`
	Call string  `json:"call,omitempty"`
	// Lost: who made that call has lost the episode. It counts as spent until the
	// log says what became of it.
	Lost     bool `json:"lost,omitempty"`
	Delivery int  `json:"delivery"` // of the job; whoever has an earlier one changes nothing any more
}

// leaf is what of the shelved money is of one episode or task.
type leaf struct {
	Spent    float64 `json:"spent"`
	Delivery int     `json:"delivery,omitempty"` // of an episode's job: as in its share
}

// sheet is a page that is being changed, with the leaves that this takes.
type sheet struct {
	budget
	read    func(name string) (leaf, error)
	leaves  map[string]leaf
	reads   int             // of leaves
	written map[string]bool // leaves to be written
	changed bool
}

func readSheet(body []byte, read func(string) (leaf, error)) (*sheet, error) {
	s := &sheet{read: read, leaves: map[string]leaf{}, written: map[string]bool{}}
	if err := json.Unmarshal(body, &s.budget); err != nil {
		return nil, fmt.Errorf("reading the budget of the run: %w", err)
	}
	if s.Open == nil {
		s.Open = map[string]share{}
	}
	return s, nil
}

// copy is one that can be changed without the other.
func (s *sheet) copy() *sheet {
	c := *s
	c.Open, c.leaves, c.written, c.changed = maps.Clone(s.Open), maps.Clone(s.leaves), map[string]bool{}, false
	c.reads = 0
	return &c
}

// texts are the page and its leaves, written by by.
func (s *sheet) texts(by string) (page []byte, leaves map[string][]byte, err error) {
	s.By = by
	leaves = map[string][]byte{}
	for name := range s.written {
		if leaves[name], err = json.Marshal(s.leaves[name]); err != nil {
			return nil, nil, fmt.Errorf("encoding the budget: %w", err)
		}
	}
	if page, err = json.Marshal(s.budget); err != nil {
		return nil, nil, fmt.Errorf("encoding the budget: %w", err)
	}
	return page, leaves, nil
}

func episodeLeaf(id string) string { return "episode-" + engine.WorkerID(id) }
func taskLeaf(id string) string    { return "task-" + engine.WorkerID(id) }

func (s *sheet) leaf(name string) (leaf, error) {
	if v, ok := s.leaves[name]; ok {
		return v, nil
	}
	s.reads++
	v, err := s.read(name)
	if err == nil {
		s.leaves[name] = v
	}
	return v, err
}

// pots are those of the run and of a task.
func (s *sheet) pots(task string) (run, own pot, err error) {
	run, own = pot{limit: s.Limit, spent: s.Shelved}, pot{limit: s.TaskLimit}
	if s.TaskLimit > 0 {
		of, err := s.leaf(taskLeaf(task))
		if err != nil {
			return run, own, err
		}
		own.spent = of.Spent
	}
	for _, sh := range s.Open {
		run.add(sh)
		if sh.Task == task {
			own.add(sh)
		}
	}
	return run, own, nil
}

func (p *pot) add(sh share) {
	p.spent += sh.Spent
	if sh.Lost {
		p.spent += sh.Held
	} else {
		p.reserved += sh.Held
	}
}

// lines are the pots that somebody waits for, who came before.
type lines struct {
	run   bool
	tasks map[string]bool
}

// reserve sets aside what want holds; ok is false where it has to wait. It may be asked
// again by who does not know whether it was granted.
func (s *sheet) reserve(episode string, want share, before *lines) (ok bool, err error) {
	sh, open := s.Open[episode]
	switch {
	case open && sh.Held > 0 && sh.Call == want.Call && sh.Delivery == want.Delivery:
		return true, nil
	case s.Over != "":
		return false, overBudget(s.Over)
	case !open:
		if sh, err = s.shelved(episode); err != nil {
			return false, err
		}
	}
	if sh.Delivery > want.Delivery {
		return false, engine.ErrLeaseLost
	}
	worst := want.Held
	run, own, err := s.pots(want.Task)
	switch {
	case err != nil:
		return false, err
	case run.never(worst):
		s.Over, s.changed = run.refusal("the run's budget", worst), true
		return false, overBudget(s.Over)
	case own.never(worst):
		return false, fmt.Errorf("%w: %s", llms.ErrBudget, own.refusal("limits.task_cost", worst))
	case before.run || before.tasks[want.Task] || !run.now(worst) || !own.now(worst):
		before.run = before.run || !run.now(worst)
		before.tasks[want.Task] = before.tasks[want.Task] || s.TaskLimit > 0
		return false, nil
	}
	if !open {
		if err := s.shelf(episode, want.Task, -sh.Spent, leaf{Delivery: want.Delivery}); err != nil {
			return false, err
		}
	}
	want.Spent = sh.Spent + sh.Held
	s.Open[episode], s.changed = want, true
	return true, nil
}

// settle turns what is held for a call into what was paid, once that is on record.
func (s *sheet) settle(episode string, delivery int, call string, paid float64) {
	if sh, ok := s.Open[episode]; ok && sh.Delivery == delivery && sh.Held > 0 && sh.Call == call {
		s.Open[episode], s.changed = share{Task: sh.Task, Spent: sh.Spent + paid, Delivery: delivery}, true
	}
}

// lose counts a call whose maker is gone as spent.
func (s *sheet) lose(episode string) {
	sh := s.Open[episode]
	sh.Lost = true
	s.Open[episode], s.changed = sh, true
}

// restore makes a share what the log of its episode says.
func (s *sheet) restore(episode, task string, delivery int, spent float64) error {
	sh, open := s.Open[episode]
	if !open {
		var err error
		if sh, err = s.shelved(episode); err != nil {
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
		if err := s.shelf(episode, task, -sh.Spent, leaf{Delivery: delivery}); err != nil {
			return err
		}
	}
	s.Open[episode], s.changed = share{Task: task, Spent: spent, Delivery: delivery}, true
	return nil
}

// shelve puts the share of an episode away that nobody has in hand any more.
func (s *sheet) shelve(episode string, delivery int) error {
	sh, open := s.Open[episode]
	if !open || sh.Delivery > delivery || sh.Held > 0 {
		return nil
	}
	delete(s.Open, episode)
	s.changed = true
	return s.shelf(episode, sh.Task, sh.Spent, leaf{sh.Spent, sh.Delivery})
}

// shelved is the share of an episode that nobody has in hand.
func (s *sheet) shelved(episode string) (share, error) {
	l, err := s.leaf(episodeLeaf(episode))
	return share{Spent: l.Spent, Delivery: l.Delivery}, err
}

// shelf adds to what is shelved; of the episode it is then own.
func (s *sheet) shelf(episode, task string, more float64, own leaf) error {
	if more == 0 {
		return nil
	}
	of, err := s.leaf(taskLeaf(task))
	if err != nil {
		return err
	}
	s.Shelved += more
	of.Spent += more
	for name, l := range map[string]leaf{taskLeaf(task): of, episodeLeaf(episode): own} {
		s.leaves[name], s.written[name] = l, true
	}
	return nil
}
