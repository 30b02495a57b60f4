package observe

import (
	"github.com/tracesmith/tracesmith/schemas"
)

// Start says what a run is going to do.
type Start struct {
	RunID, RunDir          string
	Selected, Reused, ToDo int
	Workers                int
}

// Observer is told what happens. Its methods are called from several
// goroutines and must not block.
type Observer interface {
	RunStarted(s Start)
	JobStarted(j schemas.Job, delivery int)
	Step(j schemas.Job, s schemas.Step)
	// JobRetried: an infrastructure failure; the job goes back to the queue.
	JobRetried(j schemas.Job, cause error)
	// JobFinished: the job has its outcome.
	JobFinished(j schemas.Job, e Episode)
	RunFinished(r Report)
}

// Silent observes nothing.
type Silent struct{}

func (Silent) RunStarted(Start)                 {}
func (Silent) JobStarted(schemas.Job, int)      {}
func (Silent) Step(schemas.Job, schemas.Step)   {}
func (Silent) JobRetried(schemas.Job, error)    {}
func (Silent) JobFinished(schemas.Job, Episode) {}
func (Silent) RunFinished(Report)               {}
