package observe

import (
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// Start describes the work of a run.
type Start struct {
	RunID, RunDir          string
	Selected, Reused, ToDo int
	Workers                int           // jobs that this process executes at once; 0: other processes do
	Activities             *Activities   // what the jobs do; nil: unknown
	CallTimeout            time.Duration // time limit of a model call; 0: unknown
	CostLimit              float64       // of the run, in USD; 0: none
	// Calls returns the model calls of the whole run, and Endpoints the state of the servers. They
	// are nil if other processes execute the jobs.
	Calls     func() schemas.Calls
	Endpoints func() []Endpoint
}

// Endpoint is the state of a model server.
type Endpoint struct {
	Name    string
	Running int           // calls
	Limit   int           // of running calls at the moment; 0: none
	Refused int           // calls that the server refused because of its rate limits
	Failed  int           // calls that failed otherwise
	Pause   time.Duration // no call starts during this time
}

// Observer receives the events of a run. Its methods are called concurrently and must
// not block.
type Observer interface {
	RunStarted(s Start)
	JobStarted(j schemas.Job, delivery int)
	Step(j schemas.Job, s schemas.Step)
	// JobRetried reports an infrastructure failure after which the job is queued again.
	JobRetried(j schemas.Job, cause error)
	// JobFinished reports the outcome of a job.
	JobFinished(j schemas.Job, e Episode)
	RunFinished(r Report)
}

// Silent ignores all events.
type Silent struct{}

func (Silent) RunStarted(Start)                 {}
func (Silent) JobStarted(schemas.Job, int)      {}
func (Silent) Step(schemas.Job, schemas.Step)   {}
func (Silent) JobRetried(schemas.Job, error)    {}
func (Silent) JobFinished(schemas.Job, Episode) {}
func (Silent) RunFinished(Report)               {}
