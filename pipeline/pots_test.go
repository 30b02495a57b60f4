package pipeline

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tracesmith/tracesmith/schemas"
)

// A call that waits for money goes on when some comes back, ends with its
// conversation or with the run, and never takes any with it.
func TestWaitingForMoney(t *testing.T) {
	errStop := errors.New("no credit left")
	for name, c := range map[string]struct {
		cfg  Config
		then func(l *ledger, holder *account, cancel func())
		want error
	}{
		"of the run":             {Config{MaxCost: 1}, func(l *ledger, h *account, _ func()) { l.settle(h, 0.8, schemas.Payment{Failed: true}) }, nil},
		"of the task":            {Config{TaskCost: 1}, func(l *ledger, h *account, _ func()) { l.settle(h, 0.8, schemas.Payment{Failed: true}) }, nil},
		"withdrawn":              {Config{TaskCost: 1}, func(l *ledger, h *account, _ func()) { l.withdraw(h, 0.8) }, nil},
		"cancelled":              {Config{MaxCost: 1}, func(_ *ledger, _ *account, cancel func()) { cancel() }, context.Canceled},
		"the run stops":          {Config{MaxCost: 1}, func(l *ledger, _ *account, _ func()) { l.close(errStop) }, errStop},
		"cancelled as it is due": {Config{MaxCost: 1}, func(l *ledger, h *account, cancel func()) { cancel(); l.withdraw(h, 0.8) }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLedger(c.cfg)
				holder, waiter := l.account("one", "task"), l.account("two", "task")
				if err := l.reserve(t.Context(), holder, 0.8); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var wg sync.WaitGroup
				var got error
				returned := false
				wg.Go(func() { got, returned = l.reserve(ctx, waiter, 0.5), true })
				synctest.Wait()
				if returned {
					t.Fatalf("it did not wait: %v", got)
				}
				c.then(l, holder, cancel)
				wg.Wait()
				if !errors.Is(got, c.want) || got != nil && (waiter.calls.Made != 0 || waiter.pots[2].reserved != 0) {
					t.Errorf("%v, %+v, %+v", got, waiter.calls, *waiter.pots[2])
				}
				if got == nil && (waiter.calls.Made != 1 || waiter.pots[0].reserved != 0.5) {
					t.Errorf("%+v, %+v", waiter.calls, *waiter.pots[0])
				}
			})
		})
	}
}
