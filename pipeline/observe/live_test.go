package observe

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
)

// screen returns the lines that a terminal shows after the status line was redrawn in place.
func screen(written string) []string {
	var lines []string
	for line := range strings.SplitSeq(written, "\n") {
		if i := strings.LastIndex(line, "\r\x1b[K"); i >= 0 {
			line = line[i+len("\r\x1b[K"):]
		}
		lines = append(lines, line)
	}
	return lines
}

func TestLiveStatusLine(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	l := NewLive(&b, func() int { return 60 })
	l.Now = func() time.Time { return now }
	one, two := schemas.Job{EpisodeID: "1", Instance: "bug"}, schemas.Job{EpisodeID: "2", Instance: "wasp"}
	l.RunStarted(Start{RunID: "r", RunDir: "d", Selected: 1200, ToDo: 1200, Workers: 2})
	written := func() []string { return screen(b.String()) }
	l.JobStarted(one, 1)
	l.JobStarted(two, 1)
	now = now.Add(10 * time.Second)
	l.JobFinished(one, Episode{Outcome: "resolved", ExitReason: "submitted", Steps: 4, Wall: time.Second})
	head := "run r: 1,200 selected, 0 reused, 1,200 to run on 2 workers, in d"
	l.mu.Lock()
	if diff := cmp.Diff([]string{head, "  1/1,200 done, 1 resolved, 1 running, 10 s, about 3 h 19 m"}, written()); diff != "" {
		t.Errorf("the status line must count the success and must not wrap: %s", diff)
	}
	l.mu.Unlock()
	l.JobRetried(two, errors.New("boom\nstack"))
	l.JobStarted(two, 2)
	l.JobFinished(two, Episode{Outcome: "infra", ExitReason: "env_error", Cause: "no sandbox"})
	l.RunFinished(Report{})
	want := []string{head, "  retry  wasp#0: boom", "  [2/1200] infra      wasp#0  env_error: no sandbox", ""}
	if diff := cmp.Diff(want, written()); diff != "" {
		t.Error(diff)
	}
	l.RunFinished(Report{}) // must do nothing if the ticker does not run
}

func TestNewIsPlainWithoutTerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, plain := New(f).(*Plain); !plain {
		t.Error("New of a file is not a Plain")
	}
	if _, plain := New(&bytes.Buffer{}).(*Plain); !plain {
		t.Error("New of a buffer is not a Plain")
	}
}

// Next suggests commands after failures and commands for the data. FailureCommands, for a run that
// is published immediately, returns only the former.
func TestNext(t *testing.T) {
	r := sample()
	r.Command = []string{"tracesmith", "run", "-c", "my.yaml", "--retry", "infra", "--fresh"}
	r.Summarise()
	want := []string{
		"tracesmith run -c my.yaml --retry infra", "cat out/x/dead-letters.jsonl   # why they failed",
		"tracesmith show out/x a2   # unresolved: why", "tracesmith show out/x", "tracesmith publish out/x --to out/dataset",
	}
	r.Verdict = ""
	r.Summarise()
	if diff := cmp.Diff(want, r.Next); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[:3], r.FailureCommands()); diff != "" {
		t.Error(diff)
	}
	complete := Report{RunDir: "d", Episodes: []Episode{{ID: "x", Outcome: "resolved"}}}
	complete.Summarise()
	if complete.FailureCommands() != nil {
		t.Errorf("commands for a run without failures: %v", complete.FailureCommands())
	}
}

// The command that resumes a run can be pasted into a shell. It omits flags that must not be
// repeated.
func TestResumeCommand(t *testing.T) {
	for _, c := range []struct {
		raise, want string
		command     []string
	}{
		{"--max-cost", "tracesmith run -p 'agent.with={from: it'\\''s}' -c a.yaml --max-cost HIGHER   # resumes",
			[]string{"tracesmith", "run", "--max-cost", "0.5", "-p", "agent.with={from: it's}", "-c", "a.yaml", "--fresh"}},
		{"--max-cost", "tracesmith run -c a.yaml --max-cost HIGHER   # resumes", []string{"tracesmith", "run", "--max-cost=0.5", "-c", "a.yaml"}},
		{"", "tracesmith run --max-cost 0.5 -c a.yaml   # resumes", []string{"tracesmith", "run", "--max-cost", "0.5", "-c", "a.yaml", "--retry=infra"}},
		{"", "tracesmith run -c FILE --run-dir 'my runs/a'   # resumes", nil},
	} {
		r := Report{Verdict: OverBudget, FlagToRaise: c.raise, Command: c.command, RunDir: "my runs/a"}
		if got := r.FailureCommands(); len(got) != 1 || got[0] != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestNumberFormats(t *testing.T) {
	got := []string{
		Number(0), Number(999), Number(1000), Number(-12345), Number(int64(1234567)),
		duration(0), duration(860 * time.Millisecond), duration(1370 * time.Millisecond), duration(72 * time.Second), duration(3725 * time.Second), USD(0), USD(0.25), USD(12.5),
	}
	want := []string{"0", "999", "1,000", "-12,345", "1,234,567", "0 ms", "860 ms", "1.4 s", "1 min 12 s", "1 h 02 min", "$0", "$0.2500", "$12.50"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
