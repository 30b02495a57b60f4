package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/sinks"
)

// words returns a row with these numbers of tokens: all, trained and masked.
func words(all, trained, masked int) sinks.Row {
	some := func(n int) []string { return []string{strings.Repeat("x ", n)} }
	return sinks.Row{Value: all, Texts: some(all), Trained: some(trained), Masked: some(masked)}
}

// The report separates the tokens that a trainer learns, those that it must not learn, and
// the context, and counts the rows that exceed the trainer's default length.
func TestLintCountsTokens(t *testing.T) {
	f := exportFlags{maxTokens: 4000}
	f.options.Count = func(text string) int { return len(strings.Fields(text)) }
	rows := []sinks.Row{words(1024, 100, 20), words(1025, 300, 0), words(3000, 7, 1), words(5000, 1, 1)}
	for limit, want := range map[int]string{
		0:    "",
		1024: "2 of 3 rows exceed 1024 tokens, beyond which the trainer by default cuts or drops them: set it",
		3000: "",
	} {
		out, err := createOutput(filepath.Join(t.TempDir(), "rows.jsonl"), sinks.JSONL, false)
		if err != nil {
			t.Fatal(err)
		}
		rep := &lint{Dropped: map[string]int{}, in: map[string]bool{}, limit: limit, remedy: "set it"}
		if err := f.write(out, rows, rep); err != nil {
			t.Fatal(err)
		}
		if err := out.close(); err != nil {
			t.Fatal(err)
		}
		tokens := lintTokens{Total: 5049, Trained: 407, Masked: 21, Context: 4621, Longest: 3000, OverLimit: rep.Tokens.OverLimit}
		if diff := cmp.Diff(tokens, rep.Tokens); diff != "" {
			t.Error(diff)
		}
		if got := rep.overLimit(); got != want {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
}
