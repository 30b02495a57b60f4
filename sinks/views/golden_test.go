package views_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// omitsEdits lists the views that omit edits, even those of the agent.
var omitsEdits = map[string]bool{
	"infoseek-masked": true, "infoseek-context-patch": true, "infoseek-locate": true, "infoseek-next-action": true, "pref-pairs": true, "sft-negative-pi": true,
}

// words counts words in place of a tokenizer.
func words(s string) int { return len(strings.Fields(s)) }

// rowsOf renders all episodes and calls Finish, as export does.
func rowsOf(t *testing.T, kind string, o sinks.ViewOptions, in ...sinks.Trajectory) ([]sinks.Row, sinks.Notes) {
	t.Helper()
	o.Count = words
	v, err := sinks.Views.Build(kind, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	var out []sinks.Row
	all := sinks.Notes{}
	for _, x := range in {
		rows, notes, err := v.Render(x)
		if err != nil {
			t.Fatal(err)
		}
		all.Add(notes)
		out = append(out, rows...)
	}
	if last, ok := v.(sinks.Finisher); ok {
		rows, notes, err := last.Finish()
		if _, missing := errors.AsType[*sinks.MissingError](err); err != nil && !missing {
			t.Fatal(err)
		}
		all.Add(notes)
		out = append(out, rows...)
	}
	return out, all
}

// canonical returns a value as an export writes it.
func canonical(t *testing.T, v any) []byte {
	t.Helper()
	line, err := schemas.OrderedJSON(v)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// outputOf returns all that a view writes for an episode.
func outputOf(t *testing.T, kind string, o sinks.ViewOptions, in sinks.Trajectory) string {
	t.Helper()
	rows, _ := rowsOf(t, kind, o, in)
	var b bytes.Buffer
	for _, r := range rows {
		b.Write(r.Body)
		if r.Value != nil {
			b.Write(canonical(t, r.Value))
		}
		fmt.Fprintf(&b, "%+v%v", r.Columns, r.Texts)
	}
	return b.String()
}

// shortEpisode returns sinktest's episode with observations that are short enough for a golden
// file, and with the columns that metrics and a verifier fill in.
func shortEpisode(n int) sinks.Trajectory {
	in := sinktest.Episode("run", n).Trajectory()
	in.Episode.SchemaVersion = "1.0.0" // so that a new version does not change the golden files
	in.Episode.ProblemStatement = new("The total is wrong.")
	in.Episode.Patch = new("diff --git a/cart/stock.py b/cart/stock.py\n--- a/cart/stock.py\n+++ b/cart/stock.py\n@@ -1,3 +1,3 @@\n a\n-x\n+y\n b\n")
	in.Steps[3].Observation = new("x = 1  # ünïcode\n")
	in.Steps[3].ArgumentsRaw = new(`{"path": "cart/stock.py", "line": 3}`)
	for i, kind := range map[int]string{3: "seek_static", 4: "seek_dynamic", 5: "seek_dynamic", 7: "edit", 8: "submit"} {
		s := &in.Steps[i]
		s.ActionKind, s.IsError, s.WorkspaceSHA256, s.IsNewInformation = kind, new(false), new("w0"), new(i != 5)
		s.GoldHitFile = new(i == 3)
		if i >= 7 {
			s.WorkspaceSHA256 = new("w1")
		}
	}
	in.Steps[4].Targets = []string{"cart/other.py:7"}
	in.Steps[7].FilesChanged = []string{"cart/stock.py"}
	return in
}

// goldenInput returns the episodes of a view's golden file.
func goldenInput(kind string) []sinks.Trajectory {
	first := shortEpisode(1)
	switch kind {
	case "pref-pairs":
		return []sinks.Trajectory{withoutGold(first), failedEpisode(first)}
	case "sft-negative-pi":
		bad := failedEpisode(first)
		for i, label := range []string{"wrong", "true", "wrong"} {
			bad.Annotations = append(bad.Annotations, schemas.AnnotationRow{
				EpisodeID: bad.Episode.EpisodeID, Kind: "fact", Label: &label, Text: new(fmt.Sprintf("statement\n%d", i)), UsesGold: i == 2, Evidence: new("EVIDENCE"),
			})
		}
		return []sinks.Trajectory{first, bad}
	}
	return []sinks.Trajectory{first}
}

// withoutGold returns the episode with the agent's own edit instead of a gold one.
func withoutGold(in sinks.Trajectory) sinks.Trajectory {
	in.Steps = slices.Clone(in.Steps)
	s := &in.Steps[7]
	s.GoldEdit, s.Train, s.MaskReason = nil, true, nil
	return in
}

// failedEpisode returns the same episode, failed and one turn shorter.
func failedEpisode(in sinks.Trajectory) sinks.Trajectory {
	in = withoutGold(in)
	in.Episode.EpisodeID, in.Episode.VerifyStatus, in.Episode.Resolved = "f"+in.Episode.EpisodeID[1:], "verified_fail", new(false)
	in.Steps = in.Steps[:9]
	return in
}

// A change of a golden file changes a published format; see CONTRIBUTING.md.
func TestGoldenRows(t *testing.T) {
	for _, kind := range sinks.Views.Kinds() {
		t.Run(kind, func(t *testing.T) {
			rows, notes := rowsOf(t, kind, sinks.ViewOptions{AllowGold: true}, goldenInput(kind)...)
			var got bytes.Buffer
			fmt.Fprintln(&got, notes)
			for _, r := range rows {
				if r.File != "" {
					fmt.Fprintf(&got, "== %s\n%s", r.File, r.Body)
					continue
				}
				got.Write(append(canonical(t, r.Value), '\n'))
			}
			path := filepath.Join("testdata", kind+".golden")
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v: write it with -update", err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("run with -update if the change is intended:\n%s", diff)
			}
		})
	}
}
