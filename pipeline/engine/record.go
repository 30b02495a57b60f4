package engine

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// State is the state of a job. Done and Dead are terminal.
type State string

// The states a Record moves through.
const (
	Queued  State = "queued"
	Running State = "running"
	Done    State = "done"
	Dead    State = "dead" // after too many failures or claims (see exhausted); Revive requeues it
)

// Record is the authoritative state of one job.
type Record struct {
	State State           `json:"state"`
	Data  json.RawMessage `json:"data,omitempty"` // the job, as enqueued
	Body  string          `json:"body,omitempty"` // instead of Data: the name of the object that holds the job
	Owner string          `json:"owner,omitempty"`
	// Delivery counts all claims of the job. Tries and Failures count claims and
	// failed claims (reported failures and expired leases) since the job was enqueued
	// or revived.
	Delivery int       `json:"delivery"`
	Tries    int       `json:"tries"`
	Failures int       `json:"failures"`
	Enqueued time.Time `json:"enqueued"`
	Due      time.Time `json:"due"` // when the job becomes available to workers
	LeaseEnd time.Time `json:"lease,omitzero"`
	// Hash and Result describe the result, when done. Result is data of the caller.
	Hash    string          `json:"hash,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Stage   string          `json:"stage,omitempty"` // of the last failure, if its worker reported one
	Class   string          `json:"class,omitempty"`
	Cause   string          `json:"cause,omitempty"` // of the last failure, one line
	FirstAt time.Time       `json:"first_at,omitzero"`
	LastAt  time.Time       `json:"last_at,omitzero"`
}

// Terminal reports whether the job is done or dead.
func (r Record) Terminal() bool { return r.State == Done || r.State == Dead }

// recordFailure counts a failure and makes the job queued again or dead.
func (r *Record) recordFailure(stage, class, cause string, now, due time.Time, limit int) {
	r.Failures++
	r.Owner, r.LeaseEnd = "", time.Time{}
	r.Stage, r.Class, r.Cause, r.LastAt, r.Due = stage, class, cause, now, due
	r.State = Queued
	if r.exhausted(limit) {
		r.State = Dead
	}
}

// exhausted reports whether the job must not run again: after limit failures, or after 3 * limit
// claims, whatever ended them.
func (r Record) exhausted(limit int) bool { return r.Failures >= limit || r.Tries >= 3*limit }

// Entry is a Record with its id and its revision for compare-and-swap.
type Entry struct {
	ID       string
	Revision uint64
	Record
}

func decodeEntry(kve jetstream.KeyValueEntry) (Entry, error) {
	e := Entry{ID: kve.Key(), Revision: kve.Revision()}
	if err := json.Unmarshal(kve.Value(), &e.Record); err != nil {
		return e, fmt.Errorf("reading record of job %s: %w", kve.Key(), err)
	}
	return e, nil
}

// Job is a unit of work.
type Job struct {
	ID   string // unique within the run: letters, digits, '-' and '_'
	Data json.RawMessage
}
