package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/sinks"
)

// rowOfTokens returns a row with these numbers of tokens: all, trained and masked.
func rowOfTokens(all, trained, masked int) sinks.Row {
	text := func(n int) []string { return []string{strings.Repeat("x ", n)} }
	return sinks.Row{Value: all, Texts: text(all), Trained: text(trained), Masked: text(masked)}
}

// The report counts trained tokens, masked tokens and context separately, and the rows that
// exceed the trainer's default length.
func TestLintCountsTokens(t *testing.T) {
	f := exportFlags{maxTokens: 4000}
	f.options.Count = func(text string) int { return len(strings.Fields(text)) }
	rows := []sinks.Row{rowOfTokens(1024, 100, 20), rowOfTokens(1025, 300, 0), rowOfTokens(3000, 7, 1), rowOfTokens(5000, 1, 1)}
	for limit, want := range map[int]string{
		0:    "",
		1024: "2 of 3 rows exceed 1024 tokens, beyond which the trainer by default cuts or drops them: set it",
		3000: "",
	} {
		out, err := createOutput(filepath.Join(t.TempDir(), "rows.jsonl"), sinks.JSONL, false)
		if err != nil {
			t.Fatal(err)
		}
		rep := &lint{Dropped: map[string]int{}, exported: map[string]bool{}, limit: limit, remedy: "set it"}
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
