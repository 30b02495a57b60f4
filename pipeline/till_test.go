package pipeline

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

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

// bank is a run's book on a real server, as a coordinator lays it.
type bank struct {
	t    *testing.T
	srv  *server.Server
	conn *engine.Conn
	e    *engine.Engine
	book *engine.Book
}

func newBank(t *testing.T, limit, taskLimit float64) *bank {
	t.Helper()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(time.Minute) {
		t.Fatal("the NATS server does not start")
	}
	conn, err := engine.Dial(t.Context(), engine.Cluster{URL: srv.ClientURL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	b := &bank{t: t, srv: srv, conn: conn}
	if b.e, err = engine.Open(t.Context(), engine.Options{RunID: "r", Conn: conn}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.e.Close() })
	if b.book, err = b.e.OpenBook(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	b.change(func(s *sheet) { s.Limit, s.TaskLimit = limit, taskLimit })
	return b
}

// change writes the page as a coordinator does.
func (b *bank) change(do func(*sheet)) {
	b.t.Helper()
	for {
		s, revision, err := readPage(b.t.Context(), b.book)
		if err != nil {
			b.t.Fatal(err)
		}
		do(s)
		if _, ok, err := turn(b.t.Context(), b.book, s, fmt.Sprint("coordinator ", rand.Uint64()), revision); err != nil {
			b.t.Fatal(err)
		} else if ok {
			return
		}
	}
}

func (b *bank) page() *sheet {
	b.t.Helper()
	s, _, err := readPage(b.t.Context(), b.book)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// open is the till of one process.
func (b *bank) open(name string) *till {
	b.t.Helper()
	book, err := b.e.JoinBook(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return openTill(b.t.Context(), book, name, 20*time.Millisecond, slog.New(slog.DiscardHandler))
}

func job(id, task string) schemas.Job { return schemas.Job{EpisodeID: id, TaskID: task} }

// is compares the sums of the page.
func (b *bank) is(when string, spent, reserved float64) {
	b.t.Helper()
	run, _, err := b.page().pots("")
	if err != nil || math.Abs(run.spent-spent) > rounding || math.Abs(run.reserved-reserved) > rounding {
		b.t.Errorf("%s: %+v, %v; want %.2f spent and %.2f reserved", when, run, err, spent, reserved)
	}
}

// What a killed worker had set aside is held until its coordinator knows that it is
// gone, and counts as spent until the log says otherwise.
func TestMoneyOfAKilledWorker(t *testing.T) {
	t.Parallel()
	b := newBank(t, 1, 0)
	dead, alive := b.open("dead"), b.open("alive")
	defer alive.close()
	lost, err := dead.reserve(t.Context(), job("a", "x"), 1, 0.6)
	if err != nil {
		t.Fatal(err)
	}
	close(dead.quit) // as if it were killed: nothing of it comes any more
	dead.wg.Wait()
	got := make(chan error, 1)
	go func() {
		_, err := alive.reserve(t.Context(), job("b", "y"), 1, 0.5)
		got <- err
	}()
	b.is("held", 0, 0.6)
	b.change(func(s *sheet) { s.lose("a") })
	if err := <-got; !usedUp(err) {
		t.Errorf("with the worst case lost: %v", err)
	}
	b.is("lost", 0.6, 0)
	if _, err := alive.reserve(t.Context(), job("c", "y"), 1, 0.1); !usedUp(err) {
		t.Errorf("a run that is over: %v", err)
	}
	b.change(func(s *sheet) { s.Over = "" })
	alive.restore(job("a", "x"), 2, 0.2) // the log knows the answer
	call, err := alive.reserve(t.Context(), job("b", "y"), 1, 0.5)
	if err != nil {
		t.Error(err)
	}
	b.is("restored", 0.2, 0.5)
	late := b.open("late") // the first owner of a was only slow
	defer late.close()
	late.settle(job("a", "x"), 1, lost, 0.3)
	late.shelve(t.Context(), job("a", "x"), 1)
	if _, err := late.reserve(t.Context(), job("a", "x"), 1, 0.1); !errors.Is(err, engine.ErrLeaseLost) {
		t.Errorf("an owner of before: %v", err)
	}
	b.is("fenced", 0.2, 0.5)
	alive.settle(job("b", "y"), 1, call, 0.4)
	alive.shelve(t.Context(), job("a", "x"), 2)
	alive.shelve(t.Context(), job("b", "y"), 1)
	alive.restore(job("a", "x"), 3, 0.25)
	if _, err := alive.reserve(t.Context(), job("a", "x"), 3, 0.35); err != nil {
		t.Error(err)
	}
	b.is("taken up again", 0.65, 0.35)
}

// A call that gives up waiting takes no money with it, also where it is granted at
// that moment.
func TestWaitingAtTheTillEnds(t *testing.T) {
	t.Parallel()
	b := newBank(t, 1, 0)
	till := b.open("one")
	if _, err := till.reserve(t.Context(), job("a", "x"), 1, 0.9); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if call, err := till.reserve(ctx, job("b", "x"), 1, 0.1); err == nil {
			till.settle(job("b", "x"), 1, call, 0)
		} else if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
	}
	till.close()
	b.is("cancelled", 0, 0.9)
}

// Processes that ask all the time for calls of any price never pass the limits of
// the run and of a task together, and each amount is counted once.
func TestTillsOfManyProcesses(t *testing.T) {
	t.Parallel()
	b := newBank(t, 2, 1.2)
	var mu sync.Mutex
	spent := map[string]float64{}
	var all sync.WaitGroup
	for p := range 4 {
		till := b.open(fmt.Sprint("p", p))
		var calls sync.WaitGroup
		for e := range 4 {
			calls.Go(func() {
				j := job(fmt.Sprintf("e%d-%d", p, e), fmt.Sprint("task", e%2))
				for n := range 8 {
					worst := 0.01 + 0.09*rand.Float64()
					call, err := till.reserve(t.Context(), j, 1+n/4, worst)
					if err != nil {
						if !usedUp(err) && !errors.Is(err, llms.ErrBudget) {
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
					till.settle(j, 1+n/4, call, paid)
					if n%4 == 3 { // another delivery
						till.shelve(t.Context(), j, 1+n/4)
						till.restore(j, 2+n/4, of)
					}
				}
			})
		}
		all.Go(func() { calls.Wait(); till.close() })
	}
	all.Wait()
	b.is("at the end", spent["task0"]+spent["task1"], 0)
	for _, task := range []string{"task0", "task1"} {
		if _, own, err := b.page().pots(task); err != nil || math.Abs(own.spent-spent[task]) > rounding || own.spent > 1.2+rounding {
			t.Errorf("%s: %+v, %v; paid %f", task, own, err, spent[task])
		}
	}
	if sum := spent["task0"] + spent["task1"]; sum > 2+rounding || sum < 1 {
		t.Errorf("$%f of $2", sum)
	}
}

// A call that could not be announced holds its money where it may be on record all the
// same, and holds nothing where another worker has the episode.
func TestACallThatIsNotAnnounced(t *testing.T) {
	t.Parallel()
	b := newBank(t, 1, 0)
	conn, err := engine.Dial(t.Context(), engine.Cluster{URL: b.srv.ClientURL(), Patience: time.Nanosecond, CallTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	e, err := engine.Open(t.Context(), engine.Options{RunID: "r", Conn: conn, Join: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	r := newRun(Config{}, Deps{}, RunInfo{}, plan{})
	r.till = b.open("one")
	record := func(id string) *recorder {
		log, _, err := e.OpenLog(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return &recorder{run: r, job: job(id, "x"), number: 1, log: log, account: r.ledger.account(id, "x"), asking: t.Context()}
	}
	lost, unsure := record("a"), record("b")
	record("a")
	if _, err := lost.Begin(t.Context(), 0.2); !errors.Is(err, engine.ErrLeaseLost) {
		t.Errorf("for another worker's episode: %v", err)
	}
	nc, err := nats.Connect(b.srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Request("$JS.API.STREAM.DELETE.STEPS_r", nil, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := unsure.Begin(t.Context(), 0.3); err == nil || errors.Is(err, engine.ErrLeaseLost) {
		t.Errorf("without an answer: %v", err)
	}
	r.till.close()
	b.is("not announced", 0, 0.3)
}

// A page that no server takes any more stops the run with one message, and what is settled
// makes room.
func TestMoreEpisodesThanThePageHolds(t *testing.T) {
	t.Parallel()
	b := newBank(t, 1, 0)
	till := b.open("one")
	call, err := till.reserve(t.Context(), job("a", "x"), 1, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	b.change(func(s *sheet) { s.Open["many"] = share{Task: strings.Repeat("x", 1<<20-1<<10-500)} })
	_, err = till.reserve(t.Context(), job("b", strings.Repeat("y", 2000)), 1, 0.1)
	if f := asFatal(err, true); f == nil || f.ExitCode() != 2 || !strings.Contains(f.Hint(), "max_payload") {
		t.Errorf("%v", err)
	}
	till.settle(job("a", "x"), 1, call, 0.2)
	till.close()
	b.is("settled", 0.2, 0)
}
