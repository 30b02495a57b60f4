package observe

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
)

// display returns the lines that a terminal shows after it received a text.
func display(written string) []string {
	lines, at := []string{""}, 0
	for len(written) > 0 {
		rest, isCode := strings.CutPrefix(written, "\x1b[")
		switch {
		case isCode:
			n, end := 0, 0
			for ; rest[end] >= '0' && rest[end] <= '9'; end++ {
				n = 10*n + int(rest[end]-'0')
			}
			switch rest[end] {
			case 'A':
				at -= n
			case 'K': // the cursor is in the first column
				lines[at] = ""
			default:
				panic("unexpected control code " + rest[:end+1])
			}
			written = rest[end+1:]
		case written[0] == '\n':
			if at++; at == len(lines) {
				lines = append(lines, "")
			}
			written = written[1:]
		case written[0] == '\r':
			written = written[1:]
		default:
			end := strings.IndexAny(written, "\n\r\x1b")
			if end < 0 {
				end = len(written)
			}
			lines[at] += written[:end]
			written = written[end:]
		}
	}
	for len(lines) > at+1 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

var bug, wasp = schemas.Job{EpisodeID: "1", Instance: "bug"}, schemas.Job{EpisodeID: "2", Instance: "wasp-with-a-long-name"}

func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		out := NewScreen(&b, func() (int, int) { return 50, 24 })
		l, jobs := NewLive(out), NewActivities()
		check := func(what string, want ...string) {
			t.Helper()
			time.Sleep(tick)
			synctest.Wait()
			if diff := cmp.Diff(want, display(b.String())); diff != "" {
				t.Errorf("%s: %s", what, diff)
			}
		}
		l.RunStarted(Start{RunID: "r", RunDir: "d", Selected: 1200, ToDo: 1200, Workers: 2, Activities: jobs, CallTimeout: 5 * time.Minute})
		head := []string{"run r: 1,200 selected, 0 reused, 1,200 to run on 2", "    workers, in d"}
		jobs.Begin(bug, 40, InSandboxStart)
		time.Sleep(time.Second)
		jobs.Begin(wasp, 0, InSandboxStart)
		jobs.SetTurn("2", 3)
		jobs.Set("2", InTool, "bash")
		check("two jobs", append(head, "  0/1,200 done, 2 running, 1 s",
			"    bug#0                  starting sandbox 1 s", "    wasp-w…name#0  turn 3  running bash 0 s")...)
		jobs.Set("2", InModel, "")
		time.Sleep(100 * time.Second)
		jobs.End("1")
		l.JobFinished(bug, Episode{Outcome: "resolved", ExitReason: "submitted", Steps: 4, Wall: time.Second})
		fmt.Fprintln(out, "warning: a text that is too long for one line of this terminal")
		head = append(head, "warning: a text that is too long for one line of", "    this terminal")
		check("a silent server", append(head, "  1/1,200 done, 1 running, 1 resolved",
			"    wasp-wi…-name#0  waits for model 1 min 40 s", "  1 worker waits for the model server since 1", "      min 40 s (llm.timeout: 5 min)")...)
		jobs.Stop(false)
		jobs.Retry(wasp, time.Now().Add(9*time.Second))
		l.JobRetried(wasp, errors.New("boom\nstack"))
		l.JobRetried(wasp, errors.New("boom\nstack"))
		head = append(head, "  retry  wasp-with-a-long-name#0: boom")
		check("stopping", append(head, "  1/1,200 done, stopping, 0 under way", "  1 episode waits for a retry:", "      wasp-with-a-long-name#0 in 9 s")...)
		l.JobFinished(wasp, Episode{Outcome: "infra", ExitReason: "env_error", Cause: "no sandbox"})
		l.RunFinished(Report{})
		check("the end", append(head, "  [2/1200] infra      wasp-with-a-long-name#0", "      env_error: no sandbox", "")...)
		l.RunFinished(Report{}) // must do nothing if the ticker does not run
	})
}

// The table leaves out columns, shortens names and leaves out jobs rather than wrap.
func TestJobRows(t *testing.T) {
	now := time.Unix(100, 0)
	var running []Running
	for i := range 12 {
		running = append(running, Running{Instance: fmt.Sprint("pallets__flask-", 5000+i), Turn: i, MaxTurns: 40, LastTool: "view", Doing: InModel, Since: time.Unix(1, 0)})
	}
	for _, columns := range []int{20, 40, 50, 60, 80, 200} {
		for _, line := range jobRows(running, now, columns, 24) {
			if n := len([]rune(line)); columns >= 40 && n > columns-3 {
				t.Errorf("%d columns: %q has %d", columns, line, n)
			}
		}
	}
	rows := jobRows(running, now, 80, 10)
	want := []string{
		"    pallets__flask-5000#0             last view  waits for model 1 min 39 s",
		"    pallets__flask-5001#0  turn 1/40  last view  waits for model 1 min 39 s",
		"    and 8 more",
	}
	if diff := cmp.Diff(want, []string{rows[0], rows[1], rows[len(rows)-1]}); diff != "" {
		t.Error(diff)
	}
	if len(rows) != 5 {
		t.Errorf("%d lines in a terminal with 10 rows", len(rows))
	}
}

func TestWrap(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "",
		"short\n":                    "short\n",
		"one two three four\nb\n":    "one two\n   three\n   four\nb\n",
		"unbreakableunbreakable\n":   "unbreakableunbreakable\n",
		"a unbreakableunbreakable b": "a\n   unbreakableunbreakable\n   b",
		"  indented text":            "  indented\n   text",
	} {
		if got := wrap(text, 10); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if text := strings.Repeat("word ", 100); wrap(text, 0) != text {
		t.Error("a text is wrapped although the width is unknown")
	}
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
