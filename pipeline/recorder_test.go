package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/tracesmith/tracesmith/internal/enginetest"
	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
)

// If a call cannot be recorded, its reservation stays if the step log may contain the call, and
// is dropped if another worker has the episode.
func TestUnrecordedCallsKeepTheirReservation(t *testing.T) {
	t.Parallel()
	url := enginetest.NATS(t).ClientURL()
	coordConn, err := engine.Dial(t.Context(), engine.Cluster{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = coordConn.Close() }()
	coordinator, err := engine.Open(t.Context(), engine.Options{RunID: "r", Conn: coordConn})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = coordinator.Close() }()
	confirm := func(context.Context) error { return nil }
	if _, err := budget.Open(t.Context(), coordinator, budget.Setup{Limits: budget.Limits{Run: 1}, Ledger: budget.NewLedger(budget.Limits{}), Confirm: confirm}); err != nil {
		t.Fatal(err)
	}
	conn, err := engine.Dial(t.Context(), engine.Cluster{URL: url, Patience: time.Nanosecond, CallTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	e, err := engine.Open(t.Context(), engine.Options{RunID: "r", Conn: conn, Join: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	batch := newBatch(Config{}, Deps{}, "r", plan{}, budget.Limits{})
	store, err := coordinator.JoinBudget(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := budget.NewClient(t.Context(), store, "one", 20*time.Millisecond, slog.New(slog.DiscardHandler))
	newRecorder := func(id string) *recorder {
		log, _, err := e.OpenLog(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return &recorder{batch: batch, budget: client, job: schemas.Job{EpisodeID: id, TaskID: "x"}, delivery: 1, log: log, account: batch.Ledger.Account(id, "x"), turnCtx: t.Context()}
	}
	lost, unsure := newRecorder("a"), newRecorder("b")
	newRecorder("a") // takes the step log over
	if _, err := lost.Begin(t.Context(), 0.2); !errors.Is(err, engine.ErrLeaseLost) {
		t.Errorf("Begin after another worker opened the step log: %v", err)
	}
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Request("$JS.API.STREAM.DELETE.STEPS_r", nil, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := unsure.Begin(t.Context(), 0.3); err == nil || errors.Is(err, engine.ErrLeaseLost) {
		t.Errorf("Begin without an answer from the step log: %v", err)
	}
	client.Close()
	got, err := budget.Read(t.Context(), coordConn, "r")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(observe.Budget{LimitUSD: 1, ReservedUSD: 0.3}, *got); diff != "" {
		t.Error(diff)
	}
}
