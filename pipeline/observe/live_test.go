package observe

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
)

// terminal is a terminal that breaks its lines elsewhere when its width changes, like tmux.
type terminal struct {
	columns int
	lines   [][]rune // each takes one or more rows
	line    int      // of the cursor
	at      int      // character of the line
	noWrap  bool
}

func newTerminal(columns int) *terminal { return &terminal{columns: columns, lines: [][]rune{nil}} }

func (m *terminal) Write(p []byte) (int, error) {
	for text := string(p); text != ""; {
		if rest, isCode := strings.CutPrefix(text, "\x1b["); isCode {
			end := strings.IndexAny(rest, "AHJKhl")
			m.control(rest[:end], rest[end])
			text = rest[end+1:]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		m.put(r)
		text = text[size:]
	}
	return len(p), nil
}

func (m *terminal) put(r rune) {
	start := m.at / m.columns * m.columns
	switch {
	case r == '\r':
		m.at = start
	case r == '\n' && start+m.columns < len(m.lines[m.line]):
		m.at = start + m.columns
	case r == '\n':
		if m.line, m.at = m.line+1, 0; m.line == len(m.lines) {
			m.lines = append(m.lines, nil)
		}
	default:
		line := &m.lines[m.line]
		for len(*line) <= m.at {
			*line = append(*line, ' ')
		}
		(*line)[m.at] = r
		if !m.noWrap || m.at+1 < start+m.columns {
			m.at++
		}
	}
}

func (m *terminal) control(arg string, code byte) {
	line := m.lines[m.line]
	switch code {
	case 'A':
		for n, _ := strconv.Atoi(arg); n > 0; n-- {
			if m.at -= m.columns; m.at < 0 {
				m.line--
				m.at = max(0, len(m.lines[m.line])-1) / m.columns * m.columns
			}
		}
	case 'H':
		m.line, m.at = 0, 0
	case 'J':
		m.lines = append(m.lines[:m.line], line[:min(m.at, len(line))])
	case 'K': // of the whole row, which then ends its line
		start := m.at / m.columns * m.columns
		m.lines[m.line] = line[:min(start, len(line))]
		if start+m.columns < len(line) {
			m.lines = slices.Insert(m.lines, m.line+1, line[start+m.columns:])
		}
	default:
		m.noWrap = code == 'l'
	}
}

// display returns the lines of the terminal, without the empty ones at the end.
func (m *terminal) display() []string {
	var b strings.Builder
	for _, line := range m.lines {
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

// A frame replaces the last one, even if the terminal was resized and the size that the process
// knows is obsolete.
func TestScreenAfterResize(t *testing.T) {
	m, known := newTerminal(50), 50
	s := NewScreen(m, func() (int, int) { return known, 12 })
	fmt.Fprintln(s, "a line that is too long for the narrowest terminal")
	frame := func(n int) string { return fmt.Sprintf("  frame %d with forty characters in a line", n) }
	for n, actual := range []int{50, 30, 30, 15, 60, 20, 60, 60} {
		m.columns = actual
		s.Draw(frame(n), "  "+strings.Repeat("x", n), frame(n))
		if n == 3 {
			fmt.Fprintln(s, "second")
		}
		if n%3 == 0 {
			known = actual
		}
	}
	if diff := cmp.Diff([]string{"a line that is too long for the narrowest terminal", "second", frame(7), "  xxxxxxx", frame(7)}, m.display()); diff != "" {
		t.Error(diff)
	}
	s.Draw()
	for n := range 20 {
		fmt.Fprintf(s, "line %d\n", n)
	}
	s.Draw("a")
	m.columns, known = 40, 40
	s.Draw("a", "b")
	if diff := cmp.Diff([]string{"line 11", "line 12", "line 13", "line 14", "line 15", "line 16", "line 17", "line 18", "line 19", "a", "b"}, m.display()); diff != "" {
		t.Error(diff)
	}
}

// A frame is cut off if it is higher than the terminal. A text without a line break hides it.
func TestScreenLimits(t *testing.T) {
	m := newTerminal(20)
	s := NewScreen(m, func() (int, int) { return 20, 5 })
	s.Draw("a line that is too wide", "2", "3", "4", "5")
	if diff := cmp.Diff([]string{"a line that is too…", "2", "3", "    and 2 more lin…"}, m.display()); diff != "" {
		t.Error(diff)
	}
	fmt.Fprint(s, "answer: ")
	s.Draw("a", "b")
	if diff := cmp.Diff([]string{"answer:"}, m.display()); diff != "" {
		t.Error(diff)
	}
	fmt.Fprint(s, "yes\n")
	if diff := cmp.Diff([]string{"answer: yes", "a", "b"}, m.display()); diff != "" {
		t.Error(diff)
	}
}

var bug, wasp = schemas.Job{EpisodeID: "1", Instance: "bug"}, schemas.Job{EpisodeID: "2", Instance: "wasp-with-a-long-name"}

func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTerminal(50)
		out := NewScreen(m, func() (int, int) { return 50, 24 })
		l, jobs := NewLive(out), NewActivities()
		check := func(what string, want ...string) {
			t.Helper()
			time.Sleep(tick)
			synctest.Wait()
			if diff := cmp.Diff(want, m.display()); diff != "" {
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
			"    bug#0                    starting sandbox 1 s", "    wasp-wi…-name#0  turn 3  running bash 0 s")...)
		jobs.Set("2", InModel, "")
		time.Sleep(100 * time.Second)
		jobs.End("1")
		l.JobFinished(bug, Episode{Outcome: "resolved", ExitReason: "submitted", Steps: 4, Wall: time.Second})
		fmt.Fprintln(out, "warning: a text that is too long for one line of this terminal")
		head = append(head, "warning: a text that is too long for one line of", "    this terminal")
		check("a silent server", append(head, "  1/1,200 done, 1 running, 1 min 42 s", "  1 resolved",
			"    wasp-wit…g-name#0  waits for model 1 min 40 s", "  1 worker waits for the model server, 1 min 40 s", "      so far (llm.timeout: 5 min)")...)
		jobs.Stop(false, "disk full")
		jobs.Retry(wasp, time.Now().Add(9*time.Second))
		l.JobRetried(wasp, errors.New("boom\nstack"))
		l.JobRetried(wasp, errors.New("boom\nstack"))
		head = append(head, "  retry  wasp-with-a-long-name#0: boom")
		check("stopping", append(head, "  1/1,200 done, stopping, 0 under way, 1 min 42 s", "  1 resolved", "  the run stops: disk full", "  1 episode waits for a retry:", "      wasp-with-a-long-name#0 in 9 s")...)
		l.JobFinished(wasp, Episode{Outcome: "infra", ExitReason: "env_error", Cause: "no sandbox"})
		l.RunFinished(Report{})
		check("the end", append(head, "  [2/1200] infra      wasp-with-a-long-name#0", "      env_error: no sandbox")...)
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
		for _, line := range jobRows(running, now, columns, 10) {
			if n := len([]rune(line)); columns >= 40 && n > columns {
				t.Errorf("%d columns: %q has %d", columns, line, n)
			}
		}
	}
	rows := jobRows(running, now, 77, 4)
	want := []string{
		"    pallets__flask-5000#0             last view  waits for model 1 min 39 s",
		"    pallets__flask-5001#0  turn 1/40  last view  waits for model 1 min 39 s",
		"    and 8 more",
	}
	if diff := cmp.Diff(want, []string{rows[0], rows[1], rows[len(rows)-1]}); diff != "" {
		t.Error(diff)
	}
	if len(rows) != 5 {
		t.Errorf("%d lines instead of 4 and a note", len(rows))
	}
}

// The progress shows how fast the run is, what it costs and how its model servers do. There is an
// estimate of the time left as soon as three jobs have ended.
func TestLiveShowsSpeedAndServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTerminal(80)
		l, jobs := NewLive(NewScreen(m, func() (int, int) { return 80, 24 })), NewActivities()
		var calls schemas.Calls
		servers := []Endpoint{{Name: "m 10.0.0.1/v1", Running: 2, Limit: 3}, {Name: "m 10.0.0.2/v1", Running: 1, Refused: 4, Failed: 2, Pause: 9 * time.Second}}
		l.RunStarted(Start{
			RunID: "r", RunDir: "d", Selected: 10, ToDo: 10, Workers: 2, Activities: jobs, CostLimit: 5,
			Calls: func() schemas.Calls { return calls }, Endpoints: func() []Endpoint { return servers },
		})
		calls = schemas.Calls{Prompt: 1e6} // of an earlier process
		jobs.Begin(wasp, 40, InSandboxStart)
		jobs.SetCalls("2", schemas.Calls{Prompt: 41000, Completion: 400, CostUSD: 0.07})
		jobs.SetTurn("2", 12)
		time.Sleep(tick)
		synctest.Wait()
		time.Sleep(10*time.Second - time.Millisecond)
		synctest.Wait()
		calls = schemas.Calls{Prompt: 1.05e6, Completion: 1000, CostUSD: 0.5}
		for range 5 {
			l.JobFinished(bug, Episode{Outcome: "resolved"})
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		want := []string{
			"run r: 10 selected, 0 reused, 10 to run on 2 workers, in d",
			"  ██████████░░░░░░░░░░  5/10 done, 1 running, 10 s, about 10 s left",
			"  5 resolved, $0.5000 of $5.00, 5,000 tokens/s read, 100 written",
			"    wasp-with-a-long-name#0  turn 12/40  41k tokens  $0.0700  agent 10 s",
			"  m 10.0.0.1/v1: 2 of 3 calls running",
			"  m 10.0.0.2/v1: 1 call running, 4 refused because of its rate limits, 2",
			"      failed, asked to pause for 10 s",
		}
		if diff := cmp.Diff(want, m.display()); diff != "" {
			t.Error(diff)
		}
		l.RunFinished(Report{})
	})
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
		if got := Wrap(text, 10); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if text := strings.Repeat("word ", 100); Wrap(text, 0) != text {
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
	for env, want := range map[string]bool{"": true, "true": false} {
		t.Setenv("CI", env)
		_, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer tty.Close()
		if _, live := New(TerminalOf(tty)).(*Live); live != want {
			t.Errorf("CI=%s: live is %v", env, live)
		}
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
		{"--max-cost", "tracesmith run -p 'agent.with={from: it'\\''s}' -c a.yaml --max-cost HIGHER",
			[]string{"tracesmith", "run", "--max-cost", "0.5", "-p", "agent.with={from: it's}", "-c", "a.yaml", "--fresh"}},
		{"--max-cost", "tracesmith run -c a.yaml --max-cost HIGHER", []string{"tracesmith", "run", "--max-cost=0.5", "-c", "a.yaml"}},
		{"", "tracesmith run --max-cost 0.5 -c a.yaml", []string{"tracesmith", "run", "--max-cost", "0.5", "-c", "a.yaml", "--retry=infra"}},
		{"", "tracesmith run -c FILE --run-dir 'my runs/a'", nil},
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
