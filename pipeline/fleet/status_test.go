package fleet

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/engine"
)

// A job whose worker was killed after staging, before it updated the record, is reused. It counts
// once, whatever state its record has.
func TestStatusCountsUnreportedStagedJobsOnce(t *testing.T) {
	t.Parallel()
	info, err := json.Marshal(RunDetails{Selected: 2, Reused: 1, Since: 10, Attempts: 1, Settled: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []engine.State{engine.Running, engine.Queued, engine.Done} {
		s, err := statusOf(engine.RunEntry{RunID: "r", Phase: engine.Working, Info: info}, []engine.Entry{
			{ID: "a", Revision: 11, Record: engine.Record{State: state, Data: json.RawMessage(`{}`)}},
			{ID: "b", Revision: 12, Record: engine.Record{State: engine.Done, Data: json.RawMessage(`{}`)}},
		}, nil, time.Now())
		if err != nil || s.Reused != 1 || s.Ran != 1 || s.Missing != 0 || s.Waiting != 0 || s.Running != 0 || s.Done != 2 {
			t.Errorf("%s: %+v, %v", state, s, err)
		}
	}
}
