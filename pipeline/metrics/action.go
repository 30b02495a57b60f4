package metrics

import (
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

// Category returns the tool_category of a tool.
func Category(tool string) string {
	switch tool {
	case "view", "listdir", "pdb", "edit", "eval", "grep", "bash", "submit", "handover":
		return tool
	case "rewrite", "write", "create":
		return "edit"
	}
	return "other"
}

// Kind returns the action_kind of an agent's step. A turn without a call is Think.
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
