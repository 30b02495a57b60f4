package observe

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

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
		"missing: e1 bug-e#0: not finished",
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

func TestPlainProgress(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	p := NewPlain(&b)
	p.Now = func() time.Time { return now }
	j := schemas.Job{EpisodeID: "e", Instance: "bug", Attempt: 1}
	p.RunStarted(Start{RunID: "r", RunDir: "d", Selected: 3, Reused: 1, ToDo: 2, Workers: 1})
	p.JobStarted(j, 1)
	p.JobRetried(j, errors.New("boom\nstack"))
	p.JobStarted(j, 2)
	now = now.Add(90 * time.Second)
	p.Step(j, schemas.Step{})
	p.JobFinished(j, Episode{Outcome: "resolved", ExitReason: "submitted", Steps: 4, Wall: time.Second, CostUSD: new(0.25)})
	want := "run r: 3 selected, 1 reused, 2 to run on 1 workers, in d\n" +
		"  retry  bug#1: boom\n" +
		"  0/2 done, 1 running, 1 min 30 s\n" +
		"  [1/2] resolved   bug#1  submitted, 4 steps, 1 s, $0.2500\n"
	if b.String() != want {
		t.Errorf("got:\n%swant:\n%s", b.String(), want)
	}
}
