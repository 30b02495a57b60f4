package fleet

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/observe"
)

// RunDetails holds the data that a coordinator adds to the registry entry of its run.
type RunDetails struct {
	Selected int    `json:"selected"`
	Reused   int    `json:"reused"`   // staged before this coordinator started
	Since    uint64 `json:"since"`    // last revision before this coordinator started
	Attempts int    `json:"attempts"` // jobs with higher attempt numbers are not selected
	RunSpec  string `json:"offer"`    // name of the stored document that tells workers how to execute jobs (wire.offer)
	Staging  string `json:"staging"`
	// Budgeted says that workers must reserve every call in the run's shared budget.
	Budgeted bool `json:"budgeted,omitempty"`
	// Budget shows how much a completed run has spent, if it had a limit.
	Budget *observe.Budget `json:"budget,omitempty"`
	// Ignored lists the jobs whose records do not count: reused episodes whose records do not say that
	// they are done, because their workers were killed before they could update the record or are
	// about to update it, and jobs of an earlier, larger selection that a worker still executes.
	Ignored []string `json:"settled,omitempty"`
	// Outcomes and CostUSD are those of the reused episodes or, of a completed run, those of all.
	Outcomes    map[string]int `json:"outcomes,omitempty"`
	CostUSD     float64        `json:"cost_usd,omitempty"`
	CallTimeout time.Duration  `json:"call_timeout_ns,omitempty"` // time limit of a model call; 0: unknown
}

// readDetails returns the details in an entry. They are empty if the coordinator has not set any yet.
func readDetails(entry engine.RunEntry) (d RunDetails, err error) {
	if len(entry.Info) == 0 {
		return d, nil
	}
	if err := json.Unmarshal(entry.Info, &d); err != nil {
		return d, fmt.Errorf("reading the registry: run %s: %w", entry.RunID, err)
	}
	return d, nil
}

// activityOf returns what the jobs of a worker do.
func activityOf(w engine.WorkerEntry) (a observe.Activity, err error) {
	if len(w.Activity) == 0 {
		return a, nil
	}
	if err := json.Unmarshal(w.Activity, &a); err != nil {
		return a, fmt.Errorf("reading the activity of worker %s: %w", w.Name, err)
	}
	for i := range a.Running {
		a.Running[i].Worker = w.Name
	}
	return a, nil
}

func (d RunDetails) encode() ([]byte, error) {
	body, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encoding the details of the run: %w", err)
	}
	return body, nil
}
