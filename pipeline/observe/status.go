package observe

// Status is the state of a run at one moment. These equations always hold:
// Selected = Reused + Ran + Missing, and Selected = Waiting + Running + Done + Failed.
type Status struct {
	RunID       string `json:"run_id"`
	Phase       string `json:"phase"`
	Coordinator string `json:"coordinator"` // pid, host and directory
	// SilentSeconds is the number of seconds since the coordinator last reported.
	SilentSeconds float64 `json:"coordinator_silent_s"`
	Staging       string  `json:"staging"`
	Selected      int     `json:"selected"`
	Reused        int     `json:"reused"`  // staged before the coordinator started
	Ran           int     `json:"ran"`     // done or given up since then
	Missing       int     `json:"missing"` // neither reused nor ran: waiting, running, or given up before
	Waiting       int     `json:"waiting"`
	Running       int     `json:"running"`
	Done          int     `json:"done"`
	Failed        int     `json:"failed"` // given up
	// Budget shows how much the run has spent. It is nil for runs without limits.total_cost and
	// limits.task_cost, and for runs without a cluster.
	Budget *Budget `json:"budget,omitempty"`
	// Orphaned is how many of the running jobs have a worker that is silent or has left.
	Orphaned int            `json:"orphaned"`
	Workers  []WorkerStatus `json:"workers"`
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
