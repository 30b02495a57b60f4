package metrics

import (
	"encoding/json"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// Tools of other harnesses have the categories and kinds of tools that do the same.
func TestToolsOfOtherHarnesses(t *testing.T) {
	for _, c := range []struct{ tool, args, category, kind string }{
		{"execute_bash", `{"command": "ls"}`, "bash", SeekStatic},
		{"execute_bash", `{"command": "pytest -q"}`, "bash", Verify},
		{"terminal", `{"command": "rm a"}`, "bash", Exec},
		{"str_replace_editor", `{"command": "view", "path": "/a"}`, "view", SeekStatic},
		{"str_replace_editor", `{"command": "create", "path": "/a"}`, "edit", Edit},
		{"str_replace_editor", `[]`, "edit", Edit},
		{"file_editor", `{"command": "view"}`, "view", SeekStatic},
		{"edit_file", `{}`, "edit", Edit},
		{"search_dir", `{}`, "grep", SeekStatic},
		{"find_file", `{}`, "listdir", SeekStatic},
		{"open", `{}`, "view", SeekStatic},
		{"finish", `{}`, "submit", Submit},
		{"think", `{"thought": "x"}`, "other", Think},
		{"browser", `{"code": "goto('x')"}`, "other", Exec},
		{"execute_ipython_cell", `{"code": "1"}`, "other", Exec},
	} {
		call := &schemas.ToolCall{Name: c.tool, Arguments: json.RawMessage(c.args)}
		if category, kind := CategoryOf(call), Kind(call); category != c.category || kind != c.kind {
			t.Errorf("%s%s is %s and %s, want %s and %s", c.tool, c.args, category, kind, c.category, c.kind)
		}
	}
}

// Text that an agent writes to a file, or only thinks, is not executed.
func TestWrittenTextIsNoLeak(t *testing.T) {
	for tool, leaks := range map[string]bool{"str_replace_editor": false, "think": false, "finish": false, "execute_bash": true, "execute_ipython_cell": true} {
		call := &schemas.ToolCall{Name: tool, Arguments: json.RawMessage(`{"command": "curl https://example.com/fix", "code": "curl https://example.com/fix"}`)}
		if got := Leaks(call, ""); (len(got) > 0) != leaks {
			t.Errorf("%s: %v", tool, got)
		}
	}
}

func TestViewsOfEditorsAreNoEdits(t *testing.T) {
	row := func(command string) schemas.StepRow {
		return schemas.StepRow{Source: "agent", ToolName: new("str_replace_editor"), ArgumentsJSON: new(`{"command":"` + command + `"}`)}
	}
	got := toolSteps([]schemas.StepRow{row("view"), row("insert")})
	if got[0].category != "view" || got[1].category != "edit" {
		t.Errorf("%+v", got)
	}
}
