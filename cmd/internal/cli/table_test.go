package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
)

func TestTableFitsTheTerminal(t *testing.T) {
	rows := [][]cell{
		{{text: "a-rather-long-name-of-a-task#0"}, {text: "resolved", color: green}, {text: "1234567", number: true}, {text: "gpt-oss-120b"}},
		{{text: "b#10"}, {text: "unresolved", color: yellow}, {text: "-"}, {text: "an-even-longer-name-of-a-model"}},
	}
	titles := []string{"TASK", "OUTCOME", "TOKENS", "MODEL"}
	var pipe bytes.Buffer
	(&screen{Writer: &pipe}).table(titles, rows)
	if want := "TASK                            OUTCOME      TOKENS  MODEL\n" +
		"a-rather-long-name-of-a-task#0  resolved    1234567  gpt-oss-120b\n" +
		"b#10                            unresolved        -  an-even-longer-name-of-a-model\n"; pipe.String() != want {
		t.Errorf("in a pipe:\n%s", pipe.String())
	}
	for _, width := range []int{60, 40} {
		var b bytes.Buffer
		(&screen{Writer: &b, width: width}).table(titles, rows)
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("%d columns instead of %d: %s", n, width, line)
			}
		}
		if !strings.Contains(b.String(), "1234567") || !strings.Contains(b.String(), "#0") {
			t.Errorf("a number or the end of a name is missing:\n%s", b.String())
		}
	}
	var narrow bytes.Buffer // a terminal that is too narrow gets longer lines instead of empty cells
	(&screen{Writer: &narrow, width: 10}).table(titles, rows)
	if !strings.Contains(narrow.String(), "a-r…k#0 ") && !strings.Contains(narrow.String(), "a-r…sk#0 ") {
		t.Errorf("names are too short:\n%s", narrow.String())
	}
	var colored bytes.Buffer
	(&screen{Writer: &colored, width: 100, color: true}).table(titles, rows)
	if !strings.Contains(colored.String(), "\x1b[32mresolved\x1b[m    1234567") {
		t.Errorf("colors: %q", colored.String())
	}
}

// What a dataset contains cannot control the terminal, but a file gets it as it is.
func TestTerminalIsSafeFromRecordedText(t *testing.T) {
	const text = "a\x1b[31mb\x9bc\u202ed\u2066e\n\tf"
	if got := (&screen{width: 80}).safe(text); got != "a\ufffd[31mb\ufffdc\ufffdd\ufffde\n\tf" {
		t.Errorf("on a terminal: %q", got)
	}
	if got := (&screen{}).safe(text); got != text {
		t.Errorf("in a pipe: %q", got)
	}
}

// A run that was stopped early does not fill the screen with what it has not done.
func TestFewUnfinishedEpisodesAreListed(t *testing.T) {
	var unfinished []wire.Unfinished
	for i := range 36 {
		unfinished = append(unfinished, wire.Unfinished{ID: fmt.Sprintf("%032d", i), Instance: "courier"})
	}
	var out bytes.Buffer
	printUnfinished(&out, unfinished)
	if text := out.String(); strings.Count(text, "\n") != 6 || !strings.Contains(text, "000000000000  courier  not finished: repeat the run command to continue it\n") || !strings.HasSuffix(text, "and 31 more that are not finished\n") {
		t.Error(text)
	}
}
