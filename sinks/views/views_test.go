package views_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
	_ "github.com/tracesmith/tracesmith/sinks/views"
)

func trajectory() sinks.Trajectory {
	s := sinktest.Episode("run", 1)
	return s.Trajectory()
}

func render(t *testing.T, kind string, o sinks.ViewOptions, in sinks.Trajectory) ([]map[string]any, sinks.Notes) {
	t.Helper()
	v, err := sinks.Views.Build(kind, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	rows, notes, err := v.Render(in)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, row := range rows {
		if row.File != "" {
			continue
		}
		line, err := schemas.CanonicalJSON(row.Value)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsAny(line, "\n\u2028") {
			t.Error("a row is more than one line")
		}
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.UseNumber()
		var m map[string]any
		if err := dec.Decode(&m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out, notes
}

// roles returns the roles of a list of messages as letters: s, u, a, t.
func roles(list any) string {
	var b strings.Builder
	for _, m := range list.([]any) {
		b.WriteString(m.(map[string]any)["role"].(string)[:1])
	}
	return b.String()
}

// checkCalls checks that the calls in list, a list of messages, are the first calls of steps,
// in order, with the same ids, names and argument objects. It returns their number.
func checkCalls(t *testing.T, list any, steps []schemas.StepRow) int {
	t.Helper()
	var want []string
	for _, s := range steps {
		if s.ToolName != nil {
			want = append(want, *s.ToolCallID+" "+*s.ToolName+" "+*s.ArgumentsJSON)
		}
	}
	n := 0
	for _, m := range list.([]any) {
		calls, _ := m.(map[string]any)["tool_calls"].([]any)
		for _, c := range calls {
			fn := c.(map[string]any)["function"].(map[string]any)
			args, ok := fn["arguments"].(map[string]any)
			if !ok {
				t.Fatalf("arguments are %T, want an object", fn["arguments"])
			}
			raw, err := schemas.CanonicalJSON(args)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.(map[string]any)["id"].(string) + " " + fn["name"].(string) + " " + string(raw); got != want[n] {
				t.Errorf("call %d: got %s, want %s", n, got, want[n])
			}
			n++
		}
	}
	return n
}

func TestSFTTRLCutsBeforeGold(t *testing.T) {
	in := trajectory()
	rows, notes := render(t, "sft-trl", sinks.ViewOptions{Mask: sinks.MaskContext}, in)
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	row := rows[0]
	list := slices.Concat(row["prompt"].([]any), row["completion"].([]any))
	if got, want := roles(row["prompt"])+"|"+roles(row["completion"]), "su|attata"; got != want {
		t.Errorf("roles %s, want %s", got, want)
	}
	if n := checkCalls(t, list, in.Steps); n != 3 {
		t.Errorf("%d calls, want the 3 before the gold edit", n)
	}
	delete(notes, "rows_that_need_assistant_only_loss") // TestAnswersInCompletionsAreNoted checks it
	if diff := cmp.Diff(sinks.Notes{"turns_cut_gold": 3, "null_arguments": 1}, notes); diff != "" {
		t.Error(diff)
	}
	if got := list[1].(map[string]any)["content"]; got != in.Steps[1].Message+"\n\n1 failed" {
		t.Errorf("first user message = %q", got)
	}
	first := list[2].(map[string]any)
	if first["reasoning_content"] != "think <b>&</b>" || len(first["tool_calls"].([]any)) != 2 {
		t.Errorf("parallel calls or reasoning lost: %v", first)
	}
	if second := list[5].(map[string]any); second["content"] != "" {
		t.Errorf("empty content became %v", second["content"])
	}
	if got := list[3].(map[string]any)["content"]; got != *in.Steps[3].Observation {
		t.Error("the long observation changed")
	}
	for _, key := range []string{"tools", "episode_id", "instance_id", "repo", "split", "resolved"} {
		if row[key] == nil {
			t.Errorf("key %s is missing or null", key)
		}
	}
	if tool := row["tools"].([]any)[0].(map[string]any); tool["type"] != "function" || tool["function"].(map[string]any)["name"] != "pdb" {
		t.Errorf("tool = %v", tool)
	}
	delete(row, "prompt")
	delete(row, "completion")
	if raw, _ := json.Marshal(row); bytes.Contains(raw, []byte("null")) {
		t.Errorf("a null in %s", raw)
	}
}

func TestSFTTRLMasks(t *testing.T) {
	withError := trajectory()
	withError.Steps[5].Train, withError.Steps[5].MaskReason = false, new("format_error") // turn 1
	noGold := trajectory()
	noGold.Steps[7].GoldEdit, noGold.Steps[7].Train, noGold.Steps[7].MaskReason = nil, true, nil
	onlyGold := trajectory()
	onlyGold.Steps = append(onlyGold.Steps[:3:3], onlyGold.Steps[7])
	for name, c := range map[string]struct {
		in    sinks.Trajectory
		opts  sinks.ViewOptions
		roles []string
		notes sinks.Notes
	}{
		"all gold":        {trajectory(), sinks.ViewOptions{AllowGold: true, Mask: sinks.MaskContext}, []string{"su|attataatata"}, sinks.Notes{"null_arguments": 1, "empty_replies": 1, "replies_in_a_row": 1}},
		"none":            {trajectory(), sinks.ViewOptions{Mask: sinks.MaskNone}, []string{"su|attata"}, sinks.Notes{"turns_cut_gold": 3, "null_arguments": 1}},
		"drop gold":       {trajectory(), sinks.ViewOptions{Mask: sinks.MaskDropEpisode}, nil, sinks.Notes{"turns_cut_gold": 3}},
		"drop clean":      {noGold, sinks.ViewOptions{Mask: sinks.MaskDropEpisode}, []string{"su|attataatata"}, sinks.Notes{"null_arguments": 1, "empty_replies": 1, "replies_in_a_row": 1}},
		"context":         {withError, sinks.ViewOptions{AllowGold: true, Mask: sinks.MaskContext}, []string{"su|a", "suattat|aatata"}, sinks.Notes{"turns_masked_format_error": 1, "null_arguments": 1, "empty_replies": 1, "replies_in_a_row": 1}},
		"cut error":       {withError, sinks.ViewOptions{AllowGold: true, Mask: sinks.MaskCut}, []string{"su|a"}, sinks.Notes{"turns_cut_format_error": 5}},
		"none with error": {withError, sinks.ViewOptions{AllowGold: true, Mask: sinks.MaskNone}, []string{"su|attataatata"}, sinks.Notes{"null_arguments": 1, "empty_replies": 1, "replies_in_a_row": 1}},
		"split": {withError, sinks.ViewOptions{Mask: sinks.MaskSplitRows}, []string{"su|a", "suattat|a"},
			sinks.Notes{"turns_cut_gold": 3, "turns_masked_format_error": 1, "null_arguments": 1}},
		"only gold": {onlyGold, sinks.ViewOptions{}, nil, sinks.Notes{"turns_cut_gold": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			rows, notes := render(t, "sft-trl", c.opts, c.in)
			var got []string
			for _, r := range rows {
				got = append(got, roles(r["prompt"])+"|"+roles(r["completion"]))
				checkCalls(t, slices.Concat(r["prompt"].([]any), r["completion"].([]any)), c.in.Steps)
			}
			if diff := cmp.Diff(c.roles, got); diff != "" {
				t.Error(diff)
			}
			delete(notes, "rows_that_need_assistant_only_loss") // TestAnswersInCompletionsAreNoted checks it
			if diff := cmp.Diff(c.notes, notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Every view omits text from the gold patch unless AllowGold is set, and refuses steps whose
// arguments are not a JSON object.
func TestEveryView(t *testing.T) {
	for _, kind := range sinks.Views.Kinds() {
		t.Run(kind, func(t *testing.T) {
			in := shortEpisode(1)
			in.Steps[7].ArgumentsJSON = new(`{"path":"cart/stock.py","text":"GOLDEN"}`)
			in.Episode.Patch = new(strings.ReplaceAll(*in.Episode.Patch, "+y", "+GOLDEN"))
			masks := 0
			for _, mask := range sinks.Masks {
				if _, err := sinks.Views.Build(kind, nil, sinks.ViewOptions{Mask: mask}); err != nil {
					if !strings.Contains(err.Error(), "choose one of") {
						t.Errorf("mask %s: %v", mask, err)
					}
					continue
				}
				masks++
				if out := outputOf(t, kind, sinks.ViewOptions{Mask: mask}, in); strings.Contains(out, "GOLDEN") {
					t.Errorf("mask %s shows the gold edit", mask)
				}
			}
			if masks == 0 {
				t.Error("it accepts no mask")
			}
			if out := outputOf(t, kind, sinks.ViewOptions{AllowGold: true}, in); !strings.Contains(out, "GOLDEN") && !omitsEdits[kind] {
				t.Error("allowed gold is missing")
			}
			v, err := sinks.Views.Build(kind, nil, sinks.ViewOptions{Count: words})
			if err != nil {
				t.Fatal(err)
			}
			for _, args := range []string{"", "null", "[1]", `"x"`, "{"} {
				bad := trajectory()
				bad.Steps[3].ArgumentsJSON = &args
				if _, _, err := v.Render(bad); err == nil || !strings.Contains(err.Error(), "step 3") {
					t.Errorf("arguments %q: %v, want an error naming the step", args, err)
				}
			}
			if _, _, err := v.Render(sinks.Trajectory{}); err != nil {
				t.Errorf("an episode without steps: %v", err)
			}
			if _, err := sinks.Views.Build(kind, nil, sinks.ViewOptions{Mask: "sometimes"}); err == nil || !strings.Contains(err.Error(), "choose one of") {
				t.Errorf("unknown mask: %v", err)
			}
		})
	}
}

// Python's json and gzip modules, which trainers use, read the lines.
func TestPythonReadsTheRows(t *testing.T) {
	rows, _ := render(t, "sft-trl", sinks.ViewOptions{AllowGold: true, Mask: sinks.MaskContext}, trajectory())
	path := filepath.Join(t.TempDir(), "train.jsonl.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	zip := gzip.NewWriter(f)
	for _, r := range rows {
		line, _ := schemas.CanonicalJSON(r)
		if _, err := zip.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	script := `
import gzip, json, sys
rows = [json.loads(line) for line in gzip.open(sys.argv[1], "rt", encoding="utf-8")]
for r in rows:
    r["messages"] = r["prompt"] + r["completion"]
    assert r["completion"][0]["role"] == r["completion"][-1]["role"] == "assistant"
    for m in r["messages"]:
        assert isinstance(m["content"], str)
        for c in m.get("tool_calls", []):
            assert isinstance(c["function"]["arguments"], dict)
print(len(rows), len(rows[0]["messages"]), rows[0]["messages"][5]["tool_calls"][0]["function"]["arguments"]["opts"]["deep"][1])
`
	out, err := exec.Command("/usr/bin/python3", "-c", script, path).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "1 13 2.5" {
		t.Errorf("python says %q, %v", out, err)
	}
}
