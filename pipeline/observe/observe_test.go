package observe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
)

func sample() Report {
	ep := func(id, outcome string, reused bool, resolved *bool) Episode {
		return Episode{
			ID: id, GroupID: "g-" + id[:1], Instance: "bug-" + id[:1], Outcome: outcome, ExitReason: "submitted", Reused: reused, Resolved: resolved,
			Steps: 10, CostUSD: new(0.5), Wall: 2 * time.Second, Prompt: 100, Cached: 50, Bytes: 2048, Redactions: map[string]int{"aws_key": 1},
		}
	}
	dead := ep("d1", "infra", false, nil)
	dead.Cause = "no sandbox\nstack"
	r := Report{
		RunID: "r1", RunDir: "out/x", Started: time.Unix(0, 0), Ended: time.Unix(12, 0),
		Episodes: []Episode{ep("a1", "resolved", true, new(true)), ep("a2", "unresolved", false, new(false)), ep("b1", "limit", false, new(false)), dead},
		Missing:  []Missing{{ID: "e1", Instance: "bug-e", Reason: "not finished"}},
	}
	r.Summarise()
	return r
}

func TestSummaryAddsUp(t *testing.T) {
	r := sample()
	if r.ExitCode != 3 || r.Verdict != WithGaps {
		t.Errorf("exit %d %s", r.ExitCode, r.Verdict)
	}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"COMPLETE WITH GAPS in 12 s, run directory out/x",
		"5 selected = 1 reused + 3 ran + 1 missing",
		"3 ran = 0 resolved + 1 unresolved + 0 unverified + 1 limit + 0 agent_error + 1 infra + 0 cancelled",
		"missing: bug-e#0: not finished",
		"infra: d1 bug-d#0: submitted: no sandbox\n",
		"resolved 1 of 3 verified episodes (33.3%)",
		"resolved by at least one attempt: 1 of 2 tasks",
		"cost $1.50, $0.7500 per task, $1.50 per resolved task",
		"redacted: aws_key 3",
		"--retry infra",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in:\n%s", want, b.String())
		}
		if md := string(r.Markdown()); strings.Contains(want, "=") && !strings.Contains(md, want) {
			t.Errorf("%q is not in the Markdown", want)
		}
	}
	raw, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := json.Unmarshal(raw, &back); err != nil || back["schema_version"] != ReportVersion {
		t.Errorf("%v %v", back["schema_version"], err)
	}
}

// The summary says why the cost is unknown, and uses the singular for one of something.
func TestSummarySaysWhyTheCostIsUnknown(t *testing.T) {
	for want, calls := range map[string]schemas.Calls{
		"cost unknown: the server sent no token counts for 1 answer\n": {Made: 1, Answered: 1, Uncounted: 1},
		"cost unknown: no price for some of the calls\n":               {Made: 2, Answered: 2, Uncounted: 1, Unpriced: 1},
	} {
		r := Report{Calls: calls, Data: Data{Episodes: 1, Rows: 1}, Outcome: Outcome{Episodes: 1}}
		var b bytes.Buffer
		if err := r.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) || !strings.Contains(b.String(), "1 episode, 1 step row, ") {
			t.Errorf("%q is not in:\n%s", want, b.String())
		}
	}
}

// What calls without an answer may have cost is called a limit.
func TestCostLineNamesItsLimit(t *testing.T) {
	r := Report{Outcome: Outcome{Tasks: 2}, Effort: Effort{SpentNowUSD: 1.5}}
	if got := r.costLine(1); got != "cost $1.00, $0.5000 per task; $1.50 by this command" {
		t.Error(got)
	}
	r.Calls.AtRiskUSD = 0.5
	if got := r.costLine(1); got != "cost $1.00, $0.5000 per task; at most $1.50 by this command" {
		t.Error(got)
	}
}

// A run that ended before its first episode shows no statistics, and names what is missing by the reason.
func TestSummaryWithoutEpisodes(t *testing.T) {
	r := Report{Verdict: Stopped, Started: time.Unix(0, 0), Ended: time.Unix(9, 0), RunDir: "d"}
	for i := range 12 {
		r.Missing = append(r.Missing, Missing{Instance: fmt.Sprint("bug-", i), Reason: "not finished"})
	}
	r.Summarise()
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Contains(text, "p50") || strings.Contains(text, "verified episodes") ||
		!strings.Contains(text, "missing: bug-0#0, bug-1#0,") || !strings.Contains(text, "bug-9#0 and 2 more, see summary.json: not finished\n") {
		t.Error(text)
	}
}

func TestExitCodes(t *testing.T) {
	good := Report{Episodes: []Episode{{ID: "x", Outcome: "agent_error"}}}
	good.Summarise()
	if good.ExitCode != 0 || good.Verdict != Complete {
		t.Errorf("a run with a failure of the agent has exit code %d, want 0", good.ExitCode)
	}
	budget := Report{Verdict: OverBudget, FlagToRaise: "--max-cost", ExitCode: 5, Missing: []Missing{{}}}
	budget.Summarise()
	if budget.ExitCode != 5 || !strings.Contains(budget.Next[0], "--max-cost") {
		t.Errorf("%+v", budget)
	}
}

func TestPlain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		p, jobs := NewPlain(&b), NewActivities()
		p.RunStarted(Start{RunID: "r", RunDir: "d", Selected: 3, Reused: 1, ToDo: 2, Workers: 1, Activities: jobs, CallTimeout: 90 * time.Second})
		jobs.Begin(bug, 40, InSandboxStart)
		jobs.Retry(bug, time.Time{})
		p.JobRetried(bug, errors.New("boom\nstack"))
		p.JobRetried(bug, errors.New("boom\nstack"))
		jobs.Begin(bug, 40, InSandboxStart)
		jobs.Set(bug.EpisodeID, InCallRetry, "HTTP 503")
		time.Sleep(40 * time.Second)
		jobs.Set(bug.EpisodeID, InModel, "")
		time.Sleep(80 * time.Second)
		synctest.Wait()
		jobs.Stop(true, "")
		jobs.End(bug.EpisodeID)
		p.JobFinished(bug, Episode{Outcome: "resolved", ExitReason: "submitted", Steps: 4, Wall: time.Second, CostUSD: new(0.25)})
		p.JobFinished(wasp, Episode{Outcome: "infra", ExitReason: "env_error", Cause: "boom"})
		time.Sleep(time.Minute)
		synctest.Wait()
		p.RunFinished(Report{})
		want := "run r: 3 selected, 1 reused, 2 to run on 1 worker, in d\n" +
			"  retry  bug#0: boom\n" +
			"  0/2 done, 1 running (1 model), 1 min\n" +
			"  0/2 done, 1 running (1 model), 2 min; 1 worker waits for the model server, 1 min 20 s so far (llm.timeout: 1 min 30 s)\n" +
			"  [1/2] resolved   bug#0  submitted, 4 steps, 1 s, $0.2500\n" +
			"  [2/2] infra      wasp-with-a-long-name#0  env_error\n" +
			"  2/2 done, canceling, 0 under way, 1 resolved, 1 infra, 3 min, $0.2500\n"
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWaits(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(d Doing, seconds int, detail string) Running {
		return Running{Doing: d, Detail: detail, Since: now.Add(-time.Duration(seconds) * time.Second)}
	}
	for _, c := range []struct {
		activity Activity
		want     []string
	}{
		{Activity{Running: []Running{at(InModel, 29, ""), at(InTool, 500, "bash")}}, nil},
		{Activity{Running: []Running{at(InModel, 29, ""), at(InModel, 100, ""), at(InModel, 40, "")}},
			[]string{"2 workers wait for the model server, 1 min 40 s so far (llm.timeout: 5 min)"}},
		{Activity{Running: []Running{at(InCallRetry, 1, "HTTP 503")}, Retrying: []Retrying{{Instance: "a"}, {Instance: "b", Due: now}}},
			[]string{"1 worker waits for the next try of a model call: HTTP 503", "2 episodes wait for a retry: a#0, then 1 more"}},
	} {
		if diff := cmp.Diff(c.want, c.activity.Waits(5*time.Minute, now)); diff != "" {
			t.Error(diff)
		}
	}
}
