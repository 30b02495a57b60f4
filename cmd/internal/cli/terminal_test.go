package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/synth"
)

// widest returns the number of characters of the longest line.
func widest(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		n = max(n, utf8.RuneCountInString(strings.TrimSpace(line)))
	}
	return n
}

// The progress of the factory takes a few short lines, which the next progress replaces.
func TestFactoryProgressFitsTheTerminal(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1000, 0)
	s := &State{Now: func() time.Time { return now }, Stderr: observe.NewScreen(&out, func() (int, int) { return 60, 24 })}
	show := synthProgress(s, newLiveLine(s))
	p := synth.Progress{
		Repos: 100, Surveyed: 100, SurveyRuns: 5000, SurveyDone: 4000, Planned: 20000, Judged: 10000, Chosen: 5000, Checked: 4000, Released: 3000, Remaining: 9000,
		Outcomes: map[synth.Outcome]int{synth.Valid: 9000},
	}
	show(p)
	first := out.String()
	if n := widest(first); n > 60 || !strings.Contains(first, "3000 released") {
		t.Errorf("%d columns: %q", n, first)
	}
	out.Reset()
	now = now.Add(time.Second)
	show(p)
	if second := out.String(); !strings.Contains(second, "\x1b[") {
		t.Errorf("the earlier lines stay: %q", second)
	}
}

// On a terminal, messages of steps break between words.
func TestStepsBreakBetweenWords(t *testing.T) {
	var out bytes.Buffer
	text := "The function reads\tone line at a time and returns what it has read."
	(&stepFlags{}).indent(&screen{Writer: &out, width: 24}, "", "  ", text)
	if got := out.String(); widest(got) > 24 || strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(text), " ") {
		t.Errorf("%q", got)
	}
	out.Reset()
	(&stepFlags{}).indent(&screen{Writer: &out}, "", "  ", text)
	if got := out.String(); got != "  "+text+"\n" {
		t.Errorf("not on a terminal: %q", got)
	}
}

// An error on a terminal breaks between words, but the command to try stays on one line.
func TestErrorsBreakBetweenWords(t *testing.T) {
	var out bytes.Buffer
	s := &State{Stderr: observe.NewScreen(&out, func() (int, int) { return 30, 24 })}
	printError(s, &Error{Code: ExitUsage, Err: errors.New("there is no task with this name in the directory"), Try: "tracesmith tasks list --dir tasks --json"})
	message, try, _ := strings.Cut(out.String(), "       try: ")
	if try != "tracesmith tasks list --dir tasks --json\n" || widest(message) > 30 {
		t.Errorf("%q", out.String())
	}
}
