package observe

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// Doing says what a running job does or waits for.
type Doing string

// What a running job does or waits for.
const (
	InSandboxStart Doing = "sandbox"    // its sandbox starts
	InAgent        Doing = "agent"      // the agent chooses its next call, without a model call
	InBudget       Doing = "budget"     // a model call waits until reservations of other calls are settled
	InRateLimit    Doing = "rate_limit" // a model call waits for the limits of its endpoint
	InModel        Doing = "model"      // a model call waits for its answer
	InCallRetry    Doing = "retry"      // a model call failed and waits for its next try
	InRecord       Doing = "record"     // what has just happened is recorded
	InTool         Doing = "tool"       // a tool runs
	InTests        Doing = "tests"      // the patch is graded
	InStaging      Doing = "staging"    // the episode is normalized and stored
	InWorker       Doing = "worker"     // a worker of the cluster executes the job
)

// Running describes a job that is being executed.
type Running struct {
	EpisodeID string    `json:"episode_id"`
	Instance  string    `json:"instance_id"`
	Attempt   int       `json:"attempt"`
	Worker    string    `json:"worker,omitempty"` // name of the worker of a cluster
	Began     time.Time `json:"began"`
	Turn      int       `json:"turn"`                // number of the current turn, from 1; 0 before the first
	MaxTurns  int       `json:"max_turns,omitempty"` // 0: no limit
	LastTool  string    `json:"last_tool,omitempty"`
	Doing     Doing     `json:"doing"`
	Detail    string    `json:"detail,omitempty"` // name of the running tool, or why a call is repeated
	Since     time.Time `json:"since"`            // when Doing began
	Tokens    int64     `json:"tokens,omitempty"` // of the prompts and answers of its model calls
	CostUSD   float64   `json:"cost_usd,omitempty"`
}

// Retrying describes a job that failed and waits for its next try.
type Retrying struct {
	EpisodeID string    `json:"episode_id"`
	Instance  string    `json:"instance_id"`
	Attempt   int       `json:"attempt"`
	Due       time.Time `json:"due"` // the zero time if it is unknown
}

// Activity is what the jobs of a process do at one moment.
type Activity struct {
	Running  []Running  `json:"running"`            // the longest running one first
	Retrying []Retrying `json:"retrying"`           // the next one first
	Stopping bool       `json:"stopping,omitempty"` // no new jobs start
	Failure  string     `json:"failure,omitempty"`  // with which the run stops; "": on request
	Canceled bool       `json:"canceled,omitempty"` // the running jobs are being canceled
	Idle     bool       `json:"idle,omitempty"`     // no worker of a cluster has joined the run
}

// Activities follows what the jobs of a process do. It is safe for concurrent use.
type Activities struct {
	mu       sync.Mutex
	running  map[string]*Running // by episode ID
	retrying map[string]Retrying
	stopping bool
	failure  string
	canceled bool
	idle     bool
}

// NewActivities returns an Activities without jobs.
func NewActivities() *Activities {
	return &Activities{running: map[string]*Running{}, retrying: map[string]Retrying{}}
}

// Begin adds a running job.
func (a *Activities) Begin(j schemas.Job, maxTurns int, doing Doing) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now().UTC()
	delete(a.retrying, j.EpisodeID)
	a.running[j.EpisodeID] = &Running{EpisodeID: j.EpisodeID, Instance: j.Instance, Attempt: j.Attempt, Began: now, MaxTurns: maxTurns, Doing: doing, Since: now}
}

// Set changes what a running job does.
func (a *Activities) Set(episode string, doing Doing, detail string) {
	a.update(episode, func(r *Running) {
		if r.Doing != doing || r.Detail != detail {
			r.Since = time.Now().UTC()
		}
		r.Doing, r.Detail = doing, detail
		if doing == InTool {
			r.LastTool = detail
		}
	})
}

// SetCalls sets the model calls that a running job has made.
func (a *Activities) SetCalls(episode string, c schemas.Calls) {
	a.update(episode, func(r *Running) { r.Tokens, r.CostUSD = c.Prompt+c.Completion, c.CostUSD })
}

// Replace replaces what is known about a job that another process executes.
func (a *Activities) Replace(r Running) { a.update(r.EpisodeID, func(old *Running) { *old = r }) }

// SetTurn sets the number of the turn that the agent of a running job begins, from 1.
func (a *Activities) SetTurn(episode string, turn int) {
	a.update(episode, func(r *Running) { r.Turn, r.Doing, r.Detail, r.Since = turn, InAgent, "", time.Now().UTC() })
}

func (a *Activities) update(episode string, change func(*Running)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.running[episode]; r != nil {
		change(r)
	}
}

// Leave removes a job that is no longer executed, unless it waits for a retry.
func (a *Activities) Leave(episode string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.running, episode)
}

// End removes a job that has ended.
func (a *Activities) End(episode string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.running, episode)
	delete(a.retrying, episode)
}

// Retry replaces a running job by one that waits for its next try. due is the zero time if it is
// unknown.
func (a *Activities) Retry(j schemas.Job, due time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.running, j.EpisodeID)
	a.retrying[j.EpisodeID] = Retrying{j.EpisodeID, j.Instance, j.Attempt, due}
}

// Stop records that no new jobs start and, if canceled is true, that the running ones are being
// canceled. failure is why; "": somebody requested it.
func (a *Activities) Stop(canceled bool, failure string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopping, a.canceled, a.failure = true, a.canceled || canceled, cmp.Or(a.failure, failure)
}

// SetIdle records whether a run on a cluster has no workers.
func (a *Activities) SetIdle(idle bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.idle = idle
}

// Now returns what the jobs do at this moment.
func (a *Activities) Now() Activity {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := Activity{Running: []Running{}, Retrying: []Retrying{}, Stopping: a.stopping, Failure: a.failure, Canceled: a.canceled, Idle: a.idle}
	for _, r := range a.running {
		now.Running = append(now.Running, *r)
	}
	for _, r := range a.retrying {
		now.Retrying = append(now.Retrying, r)
	}
	slices.SortFunc(now.Running, func(x, y Running) int {
		return cmp.Or(x.Began.Compare(y.Began), cmp.Compare(x.EpisodeID, y.EpisodeID))
	})
	slices.SortFunc(now.Retrying, func(x, y Retrying) int {
		return cmp.Or(x.Due.Compare(y.Due), cmp.Compare(x.EpisodeID, y.EpisodeID))
	})
	return now
}
