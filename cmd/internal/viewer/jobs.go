package viewer

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/observe"
)

// jobsPage shows the running jobs of all runs.
type jobsPage struct {
	page
	Jobs []jobsView
}

// jobsView shows the running jobs of a run that a process is working on.
type jobsView struct {
	Place, Title string
	Workers      bool // the jobs have named workers
	Rows         []jobRow
	Waits        []string // sentences about what takes unusually long, and about retries
}

type jobRow struct {
	Worker, Task, Turn, Tool, Now string
	For, Age                      string // since when it does that, and runs
}

// jobsJSON is the page for programs. It has the schema of `tracesmith status --json`.
type jobsJSON struct {
	Schema string           `json:"schema"`
	Runs   []observe.Status `json:"runs"`
}

func (s *Server) showJobs(*http.Request) (answer, error) {
	out := jobsJSON{"tracesmith.status/2", []observe.Status{}}
	for _, p := range s.places {
		if status := p.running(); status != nil {
			out.Runs = append(out.Runs, *status)
		}
	}
	return answer{"jobs", &jobsPage{s.page("Running jobs", "running"), s.jobs()}, out}, nil
}

// jobs returns the running jobs of each run that a process is working on.
func (s *Server) jobs() []jobsView {
	var out []jobsView
	for _, p := range s.places {
		status := p.running()
		if status == nil {
			continue
		}
		v := jobsView{Place: p.name, Title: plural(int64(len(status.Episodes)), "running job")}
		if len(s.places) > 1 {
			v.Title += " in " + visible(v.Place)
		}
		for _, e := range status.Episodes {
			v.Rows = append(v.Rows, newJobRow(e))
			v.Workers = v.Workers || e.Worker != ""
		}
		timeout := time.Duration(status.CallTimeoutSeconds * float64(time.Second))
		for _, sentence := range status.Activity().Waits(timeout, time.Now()) {
			v.Waits = append(v.Waits, visible(sentence))
		}
		out = append(out, v)
	}
	return out
}

func newJobRow(e observe.RunningStatus) jobRow {
	return jobRow{
		Worker: visible(e.Worker), Task: visible(fmt.Sprintf("%s#%d", e.Instance, e.Attempt)), Turn: strings.TrimPrefix(e.TurnText(), "turn "),
		Tool: visible(e.LastTool), Now: visible(e.Text()), For: millis(int64(e.DoingSeconds * 1000)), Age: millis(int64(e.AgeSeconds * 1000)),
	}
}

// job returns what an episode without a row does at the moment, or nil.
func (p *place) job(id string) *observe.RunningStatus {
	status := p.running()
	if status == nil {
		return nil
	}
	if i := slices.IndexFunc(status.Episodes, func(e observe.RunningStatus) bool { return e.EpisodeID == id }); i >= 0 {
		return &status.Episodes[i]
	}
	return nil
}
