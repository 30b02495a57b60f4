package rundir_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
	"github.com/tracesmith/tracesmith/schemas"
)

// The numbers of a run's status add up at every moment: while jobs run, fail and are retried, when
// a job is given up, after the end, and when the run is resumed.
func TestStatusOfARunningRunAddsUp(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 12)
	h.Config.Workers = 3
	if _, err := h.Status(t); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("status before the first run: %v", err)
	}
	h.OnReset = func(_ context.Context, j schemas.Job) error {
		if j.Instance == "bug-04" {
			return errors.New("no sandbox")
		}
		return nil
	}
	end := make(chan error, 1)
	go func() {
		_, err := h.Run(t.Context())
		end <- err
	}()
	reads, seen := 0, 0
	for ended := false; !ended; reads++ {
		select {
		case err := <-end:
			if ended = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
		s, err := h.Status(t)
		switch {
		case errors.Is(err, fs.ErrNotExist) && seen == 0:
			continue
		case err != nil:
			t.Fatal(err)
		}
		if s.Done < seen || s.Done > len(h.Staged(t)) || s.Running > 3 || s.Selected != 12 {
			t.Errorf("%d done before, %d staged now: %+v", seen, len(h.Staged(t)), s)
		}
		seen = s.Done
	}
	s, err := h.Status(t)
	if err != nil || s.Phase != "stopped" || s.Done != 11 || s.Failed != 1 || s.Ran != 12 || s.Running != 0 {
		t.Errorf("at the end, after %d reads: %+v, %v", reads, s, err)
	}
	h.MustRun(t) // does not retry the job that was given up
	if s, err = h.Status(t); err != nil || s.Reused != 11 || s.Failed != 1 || s.Ran != 0 || s.Missing != 1 {
		t.Errorf("after the second run: %+v, %v", s, err)
	}
	h.OnReset, h.Config.Retry = nil, []string{"infra"}
	h.MustRun(t)
	if s, err = h.Status(t); err != nil || s.Phase != "completed" || s.Reused != 11 || s.Done != 12 || s.Ran != 1 {
		t.Errorf("with --retry infra: %+v, %v", s, err)
	}
}

// The file is renewed even if nothing changes, and says what running jobs do. After Close it does
// not change.
func TestStatusFileIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, jobs := t.TempDir(), observe.NewActivities()
		f := rundir.NewStatusFile(&rundir.Dir{Path: dir, Info: rundir.Info{RunID: "r"}}, rundir.Begin{
			Selected: 2, Slots: 1, Activities: jobs, Spent: func() float64 { return 0.25 }, Outcomes: map[string]int{schemas.OutcomeResolved: 1}, Reused: 1,
		}, observe.Silent{}, slog.New(slog.DiscardHandler))
		f.RunStarted(observe.Start{})
		jobs.Begin(schemas.Job{EpisodeID: "e", Instance: "bug"}, 40, observe.InSandboxStart)
		jobs.SetTurn("e", 7)
		read := func() (s struct {
			At       time.Time
			Phase    string
			CostUSD  float64 `json:"cost_usd"`
			Outcomes map[string]int
			Activity observe.Activity
		}) {
			time.Sleep(time.Minute)
			synctest.Wait()
			raw, err := os.ReadFile(filepath.Join(dir, "status.json"))
			if err == nil {
				err = json.Unmarshal(raw, &s)
			}
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		one, two := read(), read()
		if two.At.Sub(one.At) != time.Minute || two.Phase != "working" || two.CostUSD != 0.25 || len(two.Activity.Running) != 1 || two.Activity.Running[0].Turn != 7 {
			t.Errorf("%+v, then %+v", one, two)
		}
		jobs.Stop(false, "")
		if s := read(); s.Phase != "draining" {
			t.Errorf("%+v", s)
		}
		jobs.End("e")
		f.JobFinished(schemas.Job{EpisodeID: "e"}, observe.Episode{Outcome: schemas.OutcomeResolved})
		f.Close(true, nil)
		if last, later := read(), read(); last.At != later.At || last.Phase != "completed" || last.Outcomes["resolved"] != 2 || len(last.Activity.Running) != 0 {
			t.Errorf("%+v, later %+v", last, later)
		}
	})
}

// Each episode counts once, by its last result, and the size of the file does not grow with the
// number of ended episodes.
func TestStatusFileCountsEachEpisodeOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := rundir.NewStatusFile(&rundir.Dir{Path: dir}, rundir.Begin{Selected: 300, Slots: 1, Activities: observe.NewActivities(), Spent: func() float64 { return 0 }}, observe.Silent{}, slog.New(slog.DiscardHandler))
	finish := func(i int, outcome string) (raw []byte) {
		job := schemas.Job{EpisodeID: fmt.Sprint("e", i)}
		f.JobStarted(job, 1)
		f.JobFinished(job, observe.Episode{Outcome: outcome})
		raw, err := os.ReadFile(filepath.Join(dir, "status.json"))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	finish(0, schemas.OutcomeInfra)
	first := len(finish(1, schemas.OutcomeInfra))
	finish(1, schemas.OutcomeResolved)
	finish(1, schemas.OutcomeResolved)
	finish(2, schemas.OutcomeCancelled)
	var last []byte
	for i := range 200 {
		last = finish(3+i, schemas.OutcomeResolved)
	}
	var got struct{ Done, Failed int }
	if err := json.Unmarshal(last, &got); err != nil {
		t.Fatal(err)
	}
	if got.Done != 201 || got.Failed != 1 || len(last) > first+50 { // times and counts may get more digits, but episodes add nothing
		t.Errorf("%+v, %d bytes after %d", got, len(last), first)
	}
}
