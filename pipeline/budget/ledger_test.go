package budget

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tracesmith/tracesmith/schemas"
)

// A waiting call is granted when another call releases its reservation, or ends with its episode
// or with the run. In the latter cases it reserves nothing.
func TestWaitingForAReservation(t *testing.T) {
	t.Parallel()
	errStop := errors.New("no credit left")
	for name, c := range map[string]struct {
		limits Limits
		act    func(l *Ledger, holder *Account, cancel func())
		want   error
	}{
		"run limit":             {Limits{Run: 1}, func(l *Ledger, h *Account, _ func()) { l.Settle(h, 0.8, schemas.Payment{Failed: true}) }, nil},
		"task limit":            {Limits{Task: 1}, func(l *Ledger, h *Account, _ func()) { l.Settle(h, 0.8, schemas.Payment{Failed: true}) }, nil},
		"withdrawn":             {Limits{Task: 1}, func(l *Ledger, h *Account, _ func()) { l.Withdraw(h, 0.8) }, nil},
		"canceled":              {Limits{Run: 1}, func(_ *Ledger, _ *Account, cancel func()) { cancel() }, context.Canceled},
		"the run stops":         {Limits{Run: 1}, func(l *Ledger, _ *Account, _ func()) { l.Close(errStop) }, errStop},
		"canceled when granted": {Limits{Run: 1}, func(l *Ledger, h *Account, cancel func()) { cancel(); l.Withdraw(h, 0.8) }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := NewLedger(c.limits)
				holder, waiter := l.Account("one", "task"), l.Account("two", "task")
				if err := l.Reserve(t.Context(), holder, 0.8); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var wg sync.WaitGroup
				var got error
				returned := false
				wg.Go(func() { got, returned = l.Reserve(ctx, waiter, 0.5), true })
				synctest.Wait()
				if returned {
					t.Fatalf("Reserve did not wait: %v", got)
				}
				c.act(l, holder, cancel)
				wg.Wait()
				if !errors.Is(got, c.want) || got != nil && (waiter.calls.Made != 0 || waiter.limits[2].reserved != 0) {
					t.Errorf("%v, %+v, %+v", got, waiter.calls, *waiter.limits[2])
				}
				if got == nil && (waiter.calls.Made != 1 || waiter.limits[0].reserved != 0.5) {
					t.Errorf("%+v, %+v", waiter.calls, *waiter.limits[0])
				}
			})
		})
	}
}

// First come, first served: a call that would fit does not overtake one that waits for the same
// limit. Otherwise a large call could wait forever while small ones are granted. A call that waits
// only for the limit of its task does not delay calls of other tasks.
func TestReservationsAreGrantedInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLedger(Limits{Run: 1, Task: 0.9})
		holder := l.Account("holder", "a")
		if err := l.Reserve(t.Context(), holder, 0.6); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var served []string
		reserve := func(name, task string, worst float64) {
			a := l.Account(name, task)
			go func() {
				if err := l.Reserve(t.Context(), a, worst); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				mu.Lock()
				served = append(served, name)
				mu.Unlock()
			}()
			synctest.Wait()
		}
		checkServed := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			got := slices.Sorted(slices.Values(served)) // calls that are granted together return in any order
			if slices.Sort(want); !slices.Equal(got, want) {
				t.Errorf("%s: served %v, want %v", when, served, want)
			}
		}
		reserve("of the same task", "a", 0.35) // the run has 0.4 left, the task 0.3
		reserve("of another task", "b", 0.1)
		checkServed("the task has too little left", "of another task")
		reserve("large", "c", 0.5)
		reserve("small", "d", 0.1)
		checkServed("the run has too little left", "of another task")
		l.Settle(holder, 0.6, schemas.Payment{Failed: true})
		checkServed("the first reservation is released", "of another task", "of the same task", "large")
		l.Settle(l.Account("large", "c"), 0.5, schemas.Payment{Failed: true})
		checkServed("the large reservation is released", "of another task", "of the same task", "large", "small")
	})
}
