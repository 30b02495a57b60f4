package audit

import (
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

func TestPadding(t *testing.T) {
	view := "calc.py, lines 1-3 of 3\n   1  def total(x):\n   2      y = x\n   3      return x"
	edit := call{tool: "edit", arguments: map[string]any{"path": "calc.py", "new_code": "z"}, answer: "Replaced line 2 of calc.py with 1 line.\n--- a/calc.py\n+++ b/calc.py\n@@ -1,3 +1,3 @@\n def total(x):\n-    y = x\n+    z\n     return x"}
	tests := call{tool: "eval", answer: "The tests do not pass. 1 passed, 1 failed."}
	search := func(answer string) call {
		return call{tool: "grep", arguments: map[string]any{"pattern": "x"}, answer: "1 match in 1 file:\n\ncalc.py\n" + answer}
	}
	rows := rowsOf(t,
		tests,
		call{tool: "view", arguments: map[string]any{"path": "calc.py"}, answer: view},
		call{tool: "view", arguments: map[string]any{"path": "calc.py", "start": 1}, answer: view}, // padding
		tests, // padding: nothing has changed
		pdb("c", stopped("")),
		pdb("p x", stopped("5")[len("> calc.py(3)total()\n-> return x\n"):]),
		pdb("pp x", stopped("5")[len("> calc.py(3)total()\n-> return x\n"):]), // padding
		pdb("c", stopped("")),
		pdb("p x", stopped("5")[len("> calc.py(3)total()\n-> return x\n"):]), // at another stop
		search("   2:     y = x"), // padding
		edit,
		tests, // of the edit
		call{tool: "submit", arguments: map[string]any{}, answer: "Submitted."},
		search("   17:     y = x"), // the next step uses the number
		call{tool: "view", arguments: map[string]any{"path": "calc.py", "start": 17}, answer: view}, // padding
	)
	for i := range rows {
		rows[i].ObservationSHA256 = new("x")
	}
	metrics.MarkNewInformation(metrics.Read(rows, "/testbed"))
	var e schemas.EpisodeRow
	Padding(&e, rows, recordOf(rows, "/testbed"))
	want := map[int32]bool{3: true, 4: true, 7: true, 10: true, 15: true}
	for _, r := range rows {
		if r.IsPadding == nil || *r.IsPadding != want[r.StepIndex] {
			t.Errorf("step %d, %s: %v, want %v", r.StepIndex, *r.ToolName, schemas.Value(r.IsPadding), want[r.StepIndex])
		}
	}
	if e.PaddingShare == nil || *e.PaddingShare != 5.0/15 {
		t.Errorf("share: %v", schemas.Value(e.PaddingShare))
	}
}
