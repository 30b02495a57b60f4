package metrics

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Values of action_kind: the purpose of a step.
const (
	SeekStatic  = "seek_static"
	SeekDynamic = "seek_dynamic"
	Edit        = "edit"
	Exec        = "exec"
	Verify      = "verify"
	Submit      = "submit"
	Handover    = "handover" // of findings to another model
	Think       = "think"
	None        = "none"
)

// foreignTools maps names of other harnesses' tools to categories: those of OpenHands, SWE-agent
// and R2E-Gym.
var foreignTools = map[string]string{
	"rewrite": "edit", "write": "edit", "create": "edit", "edit_file": "edit", "insert": "edit", "str_replace": "edit", "undo_edit": "edit",
	"str_replace_editor": "edit", "file_editor": "edit", "str_replace_based_edit_tool": "edit", "apply_patch": "edit",
	"execute_bash": "bash", "execute_powershell": "bash", "terminal": "bash", "shell": "bash",
	"read": "view", "open": "view", "goto": "view", "scroll_up": "view", "scroll_down": "view",
	"search_file": "grep", "search_dir": "grep", "find_file": "listdir", "glob": "listdir",
	"finish": "submit",
}

// Category returns the tool_category of a tool. That of an editor, which also shows files, depends
// on the call: use CategoryOf if there is one.
func Category(tool string) string {
	switch tool {
	case "view", "listdir", "pdb", "edit", "eval", "grep", "bash", "submit", "handover":
		return tool
	}
	return cmp.Or(foreignTools[tool], "other")
}

// CategoryOf returns the tool_category of a call.
func CategoryOf(call *schemas.ToolCall) string {
	switch call.Name {
	case "str_replace_editor", "file_editor", "str_replace_based_edit_tool":
		if Command(call) == "view" {
			return "view"
		}
	}
	return Category(call.Name)
}

// categoryOf returns the tool_category of a row's call, or "" if there is none.
func categoryOf(r *schemas.StepRow) string {
	if r.ToolName == nil {
		return ""
	}
	return CategoryOf(&schemas.ToolCall{Name: *r.ToolName, Arguments: json.RawMessage(schemas.Value(r.ArgumentsJSON))})
}

// isThought reports whether a tool only records what the agent says, as those of OpenHands do.
func isThought(tool string) bool { return tool == "think" || tool == "task_tracker" }

// Kind returns the action_kind of an agent's step. A turn without a call is Think.
func Kind(call *schemas.ToolCall) string {
	if call == nil || isThought(call.Name) {
		return Think
	}
	switch CategoryOf(call) {
	case "view", "listdir", "grep":
		return SeekStatic
	case "pdb":
		return SeekDynamic
	case "edit":
		return Edit
	case "eval":
		return Verify
	case "submit":
		return Submit
	case "handover":
		return Handover
	case "bash":
		return shellKind(Command(call))
	}
	return Exec
}

var (
	runsTests = regexp.MustCompile(`\b(pytest|py\.test|unittest|tox|nox)\b`)
	readers   = map[string]bool{
		"cat": true, "head": true, "tail": true, "less": true, "ls": true, "find": true, "grep": true, "egrep": true,
		"rg": true, "tree": true, "wc": true, "file": true, "stat": true, "pwd": true, "nl": true, "diff": true,
	}
	gitReads    = regexp.MustCompile(`^git\s+(-\S+\s+)*(log|show|diff|status|blame|grep)\b`)
	writesFiles = regexp.MustCompile(`[^0-9&]>|\btee\b|-exec\b|-delete\b`)
)

// shellKind returns the action_kind of a shell command line, considering all commands in it. It
// returns Exec in doubt.
func shellKind(line string) string {
	if runsTests.MatchString(line) {
		return Verify
	}
	if writesFiles.MatchString(line) {
		return Exec
	}
	for part := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune("|&;\n", r) }) {
		part = strings.TrimSpace(part)
		word, _, _ := strings.Cut(part, " ")
		if !readers[word] && word != "cd" && !gitReads.MatchString(part) && !strings.HasPrefix(part, "sed -n") {
			return Exec
		}
	}
	return SeekStatic
}

// Command returns the command line of a call of a shell or of the debugger, or "".
func Command(call *schemas.ToolCall) string {
	var args map[string]any
	if call == nil || json.Unmarshal(call.Arguments, &args) != nil {
		return ""
	}
	for _, name := range []string{"command", "cmd"} {
		if s, ok := args[name].(string); ok {
			return s
		}
	}
	return ""
}

// printCommands are debugger commands that are also written without a space: "p(x)".
var printCommands = regexp.MustCompile(`^(pp?|print|display|whatis)\(`)

// PDBCommand returns the first word of a debugger command. It returns "" for a blank command and
// for other calls.
func PDBCommand(call *schemas.ToolCall) string {
	if call == nil || Category(call.Name) != "pdb" {
		return ""
	}
	fields := strings.Fields(Command(call))
	if len(fields) == 0 {
		return ""
	}
	if m := printCommands.FindStringSubmatch(fields[0]); m != nil {
		return m[1]
	}
	return fields[0]
}
