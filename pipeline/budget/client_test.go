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

// bank is the shared budget of a run on a real server.
type bank struct {
	t     *testing.T
	e     *engine.Engine
	store *engine.BudgetStore
}

func newBank(t *testing.T, limit, taskLimit float64) *bank {
	t.Helper()
	conn, err := engine.Dial(t.Context(), engine.Cluster{URL: enginetest.NATS(t).ClientURL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	b := &bank{t: t}
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

// change writes the state as a coordinator does.
func (b *bank) change(do func(*draft)) {
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

func (b *bank) draft() *draft {
	b.t.Helper()
	s, _, err := readState(b.t.Context(), b.store)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// open returns the client of a process.
func (b *bank) open(name string) *Client {
	b.t.Helper()
	store, err := b.e.JoinBudget(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return NewClient(b.t.Context(), store, name, 20*time.Millisecond, slog.New(slog.DiscardHandler))
}

func job(id, task string) schemas.Job { return schemas.Job{EpisodeID: id, TaskID: task} }

// is compares what the run has spent and reserved.
func (b *bank) is(when string, spent, reserved float64) {
	b.t.Helper()
	run, _, err := b.draft().limits("")
	if err != nil || math.Abs(run.spent-spent) > rounding || math.Abs(run.reserved-reserved) > rounding {
		b.t.Errorf("%s: %+v, %v; want %.2f spent and %.2f reserved", when, run, err, spent, reserved)
	}
}

// What a killed worker had reserved is held until the coordinator knows that the worker is
// gone, and counts as spent until the step log says otherwise.
func TestKilledWorkersReservationsAreHeld(t *testing.T) {
	t.Parallel()
	b := newBank(t, 1, 0)
	dead, alive := b.open("dead"), b.open("alive")
	defer alive.Close()
	lost, err := dead.Reserve(t.Context(), job("a", "x"), 1, 0.6)
	if err != nil {
		t.Fatal(err)
	}
	close(dead.quit) // as if it were killed: nothing of it comes any more
	dead.wg.Wait()
	got := make(chan error, 1)
	go func() {
		_, err := alive.Reserve(t.Context(), job("b", "y"), 1, 0.5)
		got <- err
	}()
	b.is("held", 0, 0.6)
	b.change(func(s *draft) { s.markLost("a") })
	if err := <-got; !Exhausted(err) {
		t.Errorf("with the worst case lost: %v", err)
	}
	b.is("lost", 0.6, 0)
	if _, err := alive.Reserve(t.Context(), job("c", "y"), 1, 0.1); !Exhausted(err) {
		t.Errorf("a run that is over: %v", err)
	}
	b.change(func(s *draft) { s.Exhausted = "" })
	alive.Restore(job("a", "x"), 2, 0.2) // the log knows the answer
	call, err := alive.Reserve(t.Context(), job("b", "y"), 1, 0.5)
	if err != nil {
		t.Error(err)
	}
	b.is("restored", 0.2, 0.5)
	late := b.open("late") // the first owner of a was only slow
	defer late.Close()
	late.Settle(job("a", "x"), 1, lost, 0.3)
	late.CloseShare(t.Context(), job("a", "x"), 1)
	if _, err := late.Reserve(t.Context(), job("a", "x"), 1, 0.1); !errors.Is(err, engine.ErrLeaseLost) {
		t.Errorf("an owner of before: %v", err)
	}
	b.is("fenced", 0.2, 0.5)
	alive.Settle(job("b", "y"), 1, call, 0.4)
	alive.CloseShare(t.Context(), job("a", "x"), 2)
	alive.CloseShare(t.Context(), job("b", "y"), 1)
	alive.Restore(job("a", "x"), 3, 0.25)
	if _, err := alive.Reserve(t.Context(), job("a", "x"), 3, 0.35); err != nil {
		t.Error(err)
	}
	b.is("taken up again", 0.65, 0.35)
}

// A call that gives up waiting takes no money with it, even if it is granted at that moment.
func TestWaitingForTheSharedBudgetEnds(t *testing.T) {
	t.Parallel()
	b := newBank(t, 1, 0)
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
	b.is("cancelled", 0, 0.9)
}

// Processes that reserve calls of any price without a break never exceed the limits of the
// run and of a task together, and each amount is counted once.
func TestClientsOfManyProcesses(t *testing.T) {
	t.Parallel()
	b := newBank(t, 2, 1.2)
	var mu sync.Mutex
	spent := map[string]float64{}
	var all sync.WaitGroup
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
					of := spent[j.EpisodeID] + paid
					spent[j.EpisodeID] = of
					mu.Unlock()
					client.Settle(j, 1+n/4, call, paid)
					if n%4 == 3 { // another delivery
						client.CloseShare(t.Context(), j, 1+n/4)
						client.Restore(j, 2+n/4, of)
					}
				}
			})
		}
		all.Go(func() { calls.Wait(); client.Close() })
	}
	all.Wait()
	b.is("at the end", spent["task0"]+spent["task1"], 0)
	for _, task := range []string{"task0", "task1"} {
		if _, own, err := b.draft().limits(task); err != nil || math.Abs(own.spent-spent[task]) > rounding || own.spent > 1.2+rounding {
			t.Errorf("%s: %+v, %v; paid %f", task, own, err, spent[task])
		}
	}
	if sum := spent["task0"] + spent["task1"]; sum > 2+rounding || sum < 1 {
		t.Errorf("$%f of $2", sum)
	}
}

// A state that has grown too large for the servers stops the run with one message. Settling
// makes room.
func TestMoreEpisodesThanTheStateHolds(t *testing.T) {
	t.Parallel()
	b := newBank(t, 1, 0)
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
	b.is("settled", 0.2, 0)
}
