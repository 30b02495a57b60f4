package fleet

import (
	"encoding/json"
	"fmt"

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
	// Settled lists reused episodes whose records do not say that they are done: their workers were
	// killed before they could update the record, or are about to update it.
	Settled []string `json:"settled,omitempty"`
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

func (d RunDetails) encode() ([]byte, error) {
	body, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encoding the details of the run: %w", err)
	}
	return body, nil
}
