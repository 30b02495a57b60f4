package budget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/internal/enginetest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

// sharedBudget is the shared budget of a run on a real server.
type sharedBudget struct {
	t     *testing.T
	e     *engine.Engine
	store *engine.BudgetStore
}

func newSharedBudget(t *testing.T, limit, taskLimit float64) *sharedBudget {
	t.Helper()
	conn, err := engine.Dial(t.Context(), engine.Cluster{URL: enginetest.NATS(t).ClientURL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	b := &sharedBudget{t: t}
	if b.e, err = engine.Open(t.Context(), engine.Options{RunID: "r", Conn: conn}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.e.Close() })
	if b.store, err = b.e.OpenBudget(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	b.change(func(s *draft) { s.Limit, s.TaskLimit = limit, taskLimit })
	return b
}

// change changes the state as a coordinator does.
func (b *sharedBudget) change(do func(*draft)) {
	b.t.Helper()
	for {
		s, revision, err := readState(b.t.Context(), b.store)
		if err != nil {
			b.t.Fatal(err)
		}
		do(s)
		if _, ok, err := replaceState(b.t.Context(), b.store, s, fmt.Sprint("coordinator ", rand.Uint64()), revision); err != nil {
			b.t.Fatal(err)
		} else if ok {
			return
		}
	}
}

func (b *sharedBudget) draft() *draft {
	b.t.Helper()
	s, _, err := readState(b.t.Context(), b.store)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// open returns a client for the process with the given name.
func (b *sharedBudget) open(name string) *Client {
	b.t.Helper()
	store, err := b.e.JoinBudget(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return NewClient(b.t.Context(), store, name, 20*time.Millisecond, slog.New(slog.DiscardHandler))
}

func job(id, task string) schemas.Job { return schemas.Job{EpisodeID: id, TaskID: task} }

// check compares the amounts that the run has spent and reserved.
func (b *sharedBudget) check(when string, spent, reserved float64) {
	b.t.Helper()
	run, _, err := b.draft().limits("")
	if err != nil || math.Abs(run.spent-spent) > rounding || math.Abs(run.reserved-reserved) > rounding {
		b.t.Errorf("%s: %+v, %v; want %.2f spent and %.2f reserved", when, run, err, spent, reserved)
	}
}

// The reservation of a killed worker stays until the coordinator knows that the worker is gone.
// From then on it counts as spent until the step log shows the cost.
func TestReservationOfKilledWorkerStays(t *testing.T) {
	t.Parallel()
	b := newSharedBudget(t, 1, 0)
	dead, alive := b.open("dead"), b.open("alive")
	defer alive.Close()
	lost, err := dead.Reserve(t.Context(), job("a", "x"), 1, 0.6)
	if err != nil {
		t.Fatal(err)
	}
	close(dead.quit) // as if the process were killed: it sends nothing more
	dead.wg.Wait()
	got := make(chan error, 1)
	go func() {
		_, err := alive.Reserve(t.Context(), job("b", "y"), 1, 0.5)
		got <- err
	}()
	b.check("held", 0, 0.6)
	b.change(func(s *draft) { s.markLost("a") })
	if err := <-got; !Exhausted(err) {
		t.Errorf("Reserve after the worst case was lost: %v", err)
	}
	b.check("lost", 0.6, 0)
	if _, err := alive.Reserve(t.Context(), job("c", "y"), 1, 0.1); !Exhausted(err) {
		t.Errorf("Reserve after the budget was used up: %v", err)
	}
	b.change(func(s *draft) { s.Exhausted = "" })
	alive.Restore(job("a", "x"), 2, 0.2) // the step log has the answer
	call, err := alive.Reserve(t.Context(), job("b", "y"), 1, 0.5)
	if err != nil {
		t.Error(err)
	}
	b.check("restored", 0.2, 0.5)
	late := b.open("late") // the first owner of episode a was only slow
	defer late.Close()
	late.Settle(job("a", "x"), 1, lost, 0.3)
	late.CloseShare(t.Context(), job("a", "x"), 1)
	if _, err := late.Reserve(t.Context(), job("a", "x"), 1, 0.1); !errors.Is(err, engine.ErrLeaseLost) {
		t.Errorf("Reserve with an earlier delivery: %v", err)
	}
	b.check("fenced", 0.2, 0.5)
	alive.Settle(job("b", "y"), 1, call, 0.4)
	alive.CloseShare(t.Context(), job("a", "x"), 2)
	alive.CloseShare(t.Context(), job("b", "y"), 1)
	alive.Restore(job("a", "x"), 3, 0.25)
	if _, err := alive.Reserve(t.Context(), job("a", "x"), 3, 0.35); err != nil {
		t.Error(err)
	}
	b.check("continued by another worker", 0.65, 0.35)
}

// A call whose context ends while it waits reserves nothing, even if the reservation is granted at
// that moment.
func TestCanceledReservationHoldsNothing(t *testing.T) {
	t.Parallel()
	b := newSharedBudget(t, 1, 0)
	client := b.open("one")
	if _, err := client.Reserve(t.Context(), job("a", "x"), 1, 0.9); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if call, err := client.Reserve(ctx, job("b", "x"), 1, 0.1); err == nil {
			client.Settle(job("b", "x"), 1, call, 0)
		} else if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
	}
	client.Close()
	b.check("after canceled reservations", 0, 0.9)
}

// Several processes that keep reserving calls of different prices together never exceed the limits
// of the run and of its tasks, and each amount is counted once.
func TestClientsOfManyProcesses(t *testing.T) {
	t.Parallel()
	b := newSharedBudget(t, 2, 1.2)
	var mu sync.Mutex
	spent := map[string]float64{}
	var processes sync.WaitGroup
	for p := range 4 {
		client := b.open(fmt.Sprint("p", p))
		var calls sync.WaitGroup
		for e := range 4 {
			calls.Go(func() {
				j := job(fmt.Sprintf("e%d-%d", p, e), fmt.Sprint("task", e%2))
				for n := range 8 {
					worst := 0.01 + 0.09*rand.Float64()
					call, err := client.Reserve(t.Context(), j, 1+n/4, worst)
					if err != nil {
						if !Exhausted(err) && !errors.Is(err, llms.ErrBudget) {
							t.Error(err)
						}
						break
					}
					paid := worst * rand.Float64()
					mu.Lock()
					spent[j.TaskID] += paid
					episodeSpent := spent[j.EpisodeID] + paid
					spent[j.EpisodeID] = episodeSpent
					mu.Unlock()
					client.Settle(j, 1+n/4, call, paid)
					if n%4 == 3 { // another delivery
						client.CloseShare(t.Context(), j, 1+n/4)
						client.Restore(j, 2+n/4, episodeSpent)
					}
				}
			})
		}
		processes.Go(func() { calls.Wait(); client.Close() })
	}
	processes.Wait()
	b.check("at the end", spent["task0"]+spent["task1"], 0)
	for _, task := range []string{"task0", "task1"} {
		if _, taskLimit, err := b.draft().limits(task); err != nil || math.Abs(taskLimit.spent-spent[task]) > rounding || taskLimit.spent > 1.2+rounding {
			t.Errorf("%s: %+v, %v; paid %f", task, taskLimit, err, spent[task])
		}
	}
	if sum := spent["task0"] + spent["task1"]; sum > 2+rounding || sum < 1 {
		t.Errorf("$%f spent of a budget of $2", sum)
	}
}

// If a reservation would make the state too large for one message, Reserve returns a
// *engine.FullBudgetError. Settlements still succeed.
func TestStateTooLargeForOneMessage(t *testing.T) {
	t.Parallel()
	b := newSharedBudget(t, 1, 0)
	client := b.open("one")
	call, err := client.Reserve(t.Context(), job("a", "x"), 1, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	b.change(func(s *draft) { s.Open["many"] = share{Task: strings.Repeat("x", 1<<20-1<<10-500)} })
	_, err = client.Reserve(t.Context(), job("b", strings.Repeat("y", 2000)), 1, 0.1)
	if full, ok := errors.AsType[*engine.FullBudgetError](err); !ok || full.ExitCode() != 2 || !strings.Contains(full.Hint(), "max_payload") {
		t.Errorf("%v", err)
	}
	client.Settle(job("a", "x"), 1, call, 0.2)
	client.Close()
	b.check("settled", 0.2, 0)
}
