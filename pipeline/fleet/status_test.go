package fleet

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
)

// A job whose worker was killed after staging, before it updated the record, is reused. It counts
// once, whatever state its record has.
func TestStatusCountsUnreportedStagedJobsOnce(t *testing.T) {
	t.Parallel()
	info, err := json.Marshal(RunDetails{Selected: 2, Reused: 1, Since: 10, Attempts: 1, Ignored: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []engine.State{engine.Running, engine.Queued, engine.Done} {
		s, err := statusOf(engine.RunEntry{RunID: "r", Phase: engine.Working, Info: info}, []engine.Entry{
			{ID: "a", Revision: 11, Record: engine.Record{State: state, Data: json.RawMessage(`{}`)}},
			{ID: "b", Revision: 12, Record: engine.Record{State: engine.Done, Data: json.RawMessage(`{}`), Result: json.RawMessage(`{"outcome":"limit","cost_usd":2}`)}},
		}, nil, time.Now())
		if err != nil || s.Reused != 1 || s.Ran != 1 || s.Missing != 0 || s.Waiting != 0 || s.Running != 0 || s.Done != 2 {
			t.Errorf("%s: %+v, %v", state, s, err)
		}
	}
}

// The status shows what the jobs of living workers do, what waits for a retry, outcomes and cost.
func TestStatusShowsWhatWorkersDo(t *testing.T) {
	t.Parallel()
	now := time.Now()
	jobs := observe.NewActivities()
	jobs.Begin(schemas.Job{EpisodeID: "a", Instance: "bug"}, 40, observe.InSandboxStart)
	jobs.SetTurn("a", 3)
	jobs.SetCalls("a", schemas.Calls{CostUSD: 0.5})
	activity, err := json.Marshal(jobs.Now())
	if err != nil {
		t.Fatal(err)
	}
	worker := func(id, run string, seen time.Time) engine.WorkerEntry {
		return engine.WorkerEntry{ID: id, Name: "name of " + id, RunID: run, State: "working", Activity: activity, Seen: seen}
	}
	s, err := statusOf(engine.RunEntry{RunID: "r", Phase: engine.Working, Info: json.RawMessage(`{"selected":6,"reused":2,"attempts":1,"outcomes":{"resolved":2},"cost_usd":1}`), PID: 7, Host: "h", Dir: "d"},
		[]engine.Entry{
			{ID: "a", Revision: 1, Record: engine.Record{State: engine.Running, Owner: "w/0", Data: json.RawMessage(`{"episode_id":"a"}`)}},
			{ID: "b", Revision: 2, Record: engine.Record{State: engine.Done, Data: json.RawMessage(`{}`), Result: json.RawMessage(`{"outcome":"limit","cost_usd":2}`)}},
			{ID: "c", Revision: 3, Record: engine.Record{State: engine.Queued, Failures: 1, Data: json.RawMessage(`{"instance_id":"wasp"}`), Due: now.Add(9 * time.Second)}},
			{ID: "d", Revision: 4, Record: engine.Record{State: engine.Dead, Data: json.RawMessage(`{}`)}},
		}, []engine.WorkerEntry{worker("w", "r", now), worker("silent", "r", now.Add(-time.Hour)), worker("other", "q", now)}, now)
	if err != nil || len(s.Episodes) != 1 || s.Episodes[0].Worker != "name of w" || s.Episodes[0].Turn != 3 || s.PID != 7 || s.Host != "h" || s.RunDir != "d" {
		t.Errorf("%+v, %v", s, err)
	}
	if diff := cmp.Diff(map[string]int{"resolved": 2, "limit": 1, "infra": 1}, s.Outcomes); diff != "" || *s.CostUSD != 3.5 || s.Waiting != 1 || s.Running != 1 {
		t.Errorf("%s, %+v", diff, s)
	}
	var text strings.Builder
	if err := observe.WriteStatuses(&text, []observe.Status{s}, now); err != nil || !strings.Contains(text.String(), "on name of w  ") || !strings.Contains(text.String(), "1 episode waits for a retry: wasp#0 in 9 s") || strings.Contains(text.String(), "no worker executes") {
		t.Errorf("%v\n%s", err, text.String())
	}
	text.Reset()
	s.Workers = s.Workers[:1] // the silent one
	if err := observe.WriteStatuses(&text, []observe.Status{s}, now); err != nil || !strings.Contains(text.String(), "no worker executes this run: start one with tracesmith worker") {
		t.Errorf("%v\n%s", err, text.String())
	}
}
