package metrics

import "github.com/tracesmith/tracesmith/schemas"

// Workspaces fills workspace_sha256 of rows whose tree is known without hashing it: base before
// the first call that may change files, and final from the last such call on. It keeps the values
// that the environment recorded. base and final are nil if they are unknown.
func Workspaces(rows []schemas.StepRow, base, final *string) {
	first, last := len(rows), -1
	for i := range rows {
		if mayChange(&rows[i]) {
			first, last = min(first, i), i
		}
	}
	for i := range rows {
		r := &rows[i]
		switch {
		case r.WorkspaceSHA256 != nil || r.Source == "system":
		case i < first:
			r.WorkspaceSHA256 = base
		case i >= last:
			r.WorkspaceSHA256 = final
		}
	}
}

// mayChange reports whether a step may have changed files because it ran a program or edited. A
// refused call did neither. A program that failed may have changed files; an edit that failed has
// not.
func mayChange(r *schemas.StepRow) bool {
	if r.ToolCategory == nil || r.ActionKind == None || r.ActionKind == Think || schemas.CallRefused(schemas.Value(r.ErrorClass)) {
		return false
	}
	switch *r.ToolCategory {
	case "view", "listdir", "grep", "submit", "handover":
		return false
	case "edit":
		return succeeded(*r)
	}
	return true
}
