package observe

import (
	"slices"
	"time"
)

// Status is the state of a run at one moment. These equations always hold:
// Selected = Reused + Ran + Running + Waiting + Missing, and
// Selected = Waiting + Running + Done + Failed.
type Status struct {
	RunID string `json:"run_id"`
	Phase string `json:"phase"`
	// PID, Host and RunDir identify the process that executes or coordinates the run, and its
	// directory.
	PID    int    `json:"pid"`
	Host   string `json:"host"`
	RunDir string `json:"run_dir"`
	// SilentSeconds is the number of seconds since that process last reported. It reports every few
	// seconds, even if nothing changes.
	SilentSeconds float64 `json:"silent_s"`
	Staging       string  `json:"staging"`
	Selected      int     `json:"selected"`
	Reused        int     `json:"reused"`  // staged before the process started
	Ran           int     `json:"ran"`     // done or given up since then
	Missing       int     `json:"missing"` // given up before, and not repeated
	Waiting       int     `json:"waiting"`
	Running       int     `json:"running"`
	Done          int     `json:"done"`
	Failed        int     `json:"failed"` // given up
	// Outcomes counts the ended episodes, including reused ones. CostUSD is the price of all answered
	// model calls; on a cluster, of those of running and ended episodes.
	Outcomes map[string]int `json:"outcomes"`
	CostUSD  *float64       `json:"cost_usd"`
	// Episodes are the running ones, the longest running one first. Retrying wait for another try.
	Episodes           []RunningStatus `json:"episodes"`
	Retrying           []Retrying      `json:"retrying"`
	CallTimeoutSeconds float64         `json:"call_timeout_s,omitempty"` // llm.timeout
	// Budget shows how much the run has spent. It is nil for runs without limits.total_cost and
	// limits.task_cost, and for runs without a cluster.
	Budget *Budget `json:"budget,omitempty"`
	// Orphaned is how many of the running jobs have a worker that is silent or has left.
	Orphaned int            `json:"orphaned"`
	Workers  []WorkerStatus `json:"workers"`
}

// Live reports whether the process of the run executes it, as far as its last report says.
func (s Status) Live() bool {
	return s.Phase == "planning" || s.Phase == "working" || s.Phase == "draining" || s.Phase == "stopping"
}

// SetActivity sets what the jobs of the run do.
func (s *Status) SetActivity(a Activity, now time.Time) {
	s.Episodes, s.Retrying = []RunningStatus{}, append([]Retrying{}, a.Retrying...)
	for _, r := range a.Running {
		s.Episodes = append(s.Episodes, RunningStatus{r, max(0, now.Sub(r.Began).Seconds()), max(0, now.Sub(r.Since).Seconds())})
	}
}

// Activity is the reverse of SetActivity.
func (s Status) Activity() Activity {
	works := func(w WorkerStatus) bool { return !slices.Contains([]string{"silent", "left", "refused"}, w.State) }
	a := Activity{Retrying: s.Retrying, Idle: s.Live() && !slices.ContainsFunc(s.Workers, works)}
	for _, e := range s.Episodes {
		a.Running = append(a.Running, e.Running)
	}
	return a
}

// LocalWorker is the name of the worker of a run without a cluster.
const LocalWorker = "local"

// RunningStatus describes a running episode.
type RunningStatus struct {
	Running
	AgeSeconds   float64 `json:"age_s"`   // since the episode began
	DoingSeconds float64 `json:"doing_s"` // since Doing began
}

// WorkerStatus describes a worker that took part in the last day.
type WorkerStatus struct {
	Name          string   `json:"name"`
	Host          string   `json:"host"`
	Version       string   `json:"version"`
	State         string   `json:"state"` // "silent" if its last message is too old
	Reason        string   `json:"reason,omitempty"`
	Slots         int      `json:"slots"`
	Running       []string `json:"running"`
	Load          float64  `json:"load"`
	SilentSeconds float64  `json:"silent_s"` // seconds since the worker last reported
}

// Budget is the state of the budget that the workers of a run on a cluster share, in USD.
type Budget struct {
	LimitUSD float64 `json:"limit_usd"` // limits.total_cost; 0: none
	SpentUSD float64 `json:"spent_usd"` // includes LostUSD
	LostUSD  float64 `json:"lost_usd"`  // worst-case cost of calls whose worker is gone, until the step log shows the cost
	// ReservedUSD is the worst-case cost of the running calls. SpentUSD + ReservedUSD never
	// exceeds LimitUSD.
	ReservedUSD float64 `json:"reserved_usd"`
	UsedUp      bool    `json:"used_up"`
}
