package observe

import (
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// Start describes the work of a run.
type Start struct {
	RunID, RunDir          string
	Selected, Reused, ToDo int
	GivenUp                map[string]int // jobs that failed earlier and do not run again, by error class
	Workers                int
	Activities             *Activities   // what the jobs do; nil: unknown
	CallTimeout            time.Duration // time limit of a model call; 0: unknown
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
