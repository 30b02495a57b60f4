package metrics

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Values of action_kind (dataset.md §6.4).
const (
	SeekStatic  = "seek_static"
	SeekDynamic = "seek_dynamic"
	Edit        = "edit"
	Exec        = "exec"
	Verify      = "verify"
	Submit      = "submit"
	Handover    = "handover" // of what was found, to another model
	Think       = "think"
	None        = "none"
)

// Category is the tool_category of a tool by its name.
func Category(tool string) string {
	switch tool {
	case "view", "listdir", "pdb", "edit", "eval", "grep", "bash", "submit", "handover":
		return tool
	case "rewrite", "write", "create":
		return "edit"
	}
	return "other"
}

// Kind is the action_kind of an agent's step: what the call was for. A turn
// without a call is thought.
func Kind(call *schemas.ToolCall) string {
	if call == nil {
		return Think
	}
	switch Category(call.Name) {
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
	readsOnly = map[string]bool{
		"cat": true, "head": true, "tail": true, "less": true, "ls": true, "find": true, "grep": true, "egrep": true,
		"rg": true, "tree": true, "wc": true, "file": true, "stat": true, "pwd": true, "nl": true, "diff": true,
	}
	gitReads = regexp.MustCompile(`^git\s+(-\S+\s+)*(log|show|diff|status|blame|grep)\b`)
	writes   = regexp.MustCompile(`[^0-9&]>|\btee\b|-exec\b|-delete\b`)
)

// shellKind classifies a shell line by what every part of it does; when in
// doubt it is exec.
func shellKind(line string) string {
	if runsTests.MatchString(line) {
		return Verify
	}
	if writes.MatchString(line) {
		return Exec
	}
	for part := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune("|&;\n", r) }) {
		part = strings.TrimSpace(part)
		word, _, _ := strings.Cut(part, " ")
		if !readsOnly[word] && word != "cd" && !gitReads.MatchString(part) && !strings.HasPrefix(part, "sed -n") {
			return Exec
		}
	}
	return SeekStatic
}

// Command is the command text of a call: what a shell or the debugger was told.
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

// printed are debugger commands that people write without a space: "p(x)".
var printed = regexp.MustCompile(`^(pp?|print|display|whatis)\(`)

// PDBCommand is the first word of a debugger command, "" for a blank one.
func PDBCommand(call *schemas.ToolCall) string {
	if call == nil || Category(call.Name) != "pdb" {
		return ""
	}
	fields := strings.Fields(Command(call))
	if len(fields) == 0 {
		return ""
	}
	if m := printed.FindStringSubmatch(fields[0]); m != nil {
		return m[1]
	}
	return fields[0]
}
