package views

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

var evidencePolicies = []string{"base-state", "before-final-edit", "gold-ranked"}

// evidence is the answer to one call that looked for something.
type evidence struct {
	Step    int32    `json:"step_index"`
	Tool    string   `json:"tool"`
	Targets []string `json:"targets"`
	SHA256  string   `json:"sha256"`
	State   string   `json:"state"` // stale if a file that it shows was changed between it and the final edit, otherwise fresh

	call, text string
	gold       int // 2 if it showed a hunk of the gold patch, 1 if it showed a file of it
}

// gatherEvidence collects the evidence of an episode according to a policy. It leaves out
// failed calls, repeated texts, and all but the latest view of the same lines.
func gatherEvidence(t sinks.Trajectory, policy string) []evidence {
	final := len(t.Steps) // the last step that changed something
	for i := range t.Steps {
		if changesFiles(&t.Steps[i]) {
			final = i
		}
	}
	var out []evidence
	base := "" // the hash of the workspace before the first change
	for i := range t.Steps {
		s := &t.Steps[i]
		if sha := schemas.Value(s.WorkspaceSHA256); sha != "" {
			if base == "" && !changesFiles(s) {
				base = sha
			}
			if policy == "base-state" && sha != base {
				break
			}
		}
		if i >= final || policy == "base-state" && changesFiles(s) {
			break
		}
		if !strings.HasPrefix(s.ActionKind, "seek_") || schemas.Value(s.Observation) == "" || s.IsError != nil && *s.IsError {
			continue
		}
		if policy == "base-state" && base == "" {
			continue // not known to be the base state
		}
		e := evidenceOf(s, t.Steps[i+1:final])
		if policy == "base-state" {
			e.State = "fresh" // because the patch applies to the base state
		}
		out = append(out, e)
	}
	out = keepLatest(out)
	if policy == "gold-ranked" {
		slices.SortStableFunc(out, func(a, b evidence) int { return cmp.Compare(b.gold, a.gold) })
	}
	return out
}

func changesFiles(s *schemas.StepRow) bool {
	return len(s.FilesChanged) > 0 || s.ActionKind == "edit" && (s.IsError == nil || !*s.IsError)
}

// evidenceOf returns the evidence of a step. between holds the steps between it and the
// final edit.
func evidenceOf(s *schemas.StepRow, between []schemas.StepRow) evidence {
	e := evidence{
		Step: s.StepIndex, Tool: schemas.Value(s.ToolName), Targets: s.Targets, SHA256: schemas.HashBytes([]byte(*s.Observation)), State: "fresh",
		call: schemas.Value(s.ArgumentsJSON), text: *s.Observation,
	}
	if e.Targets == nil {
		e.Targets = []string{}
	}
	for _, later := range between {
		for _, file := range later.FilesChanged {
			if slices.ContainsFunc(s.Targets, func(target string) bool { return fileOfTarget(target) == file }) {
				e.State = "stale"
			}
		}
	}
	switch {
	case s.GoldHitHunk != nil && *s.GoldHitHunk:
		e.gold = 2
	case s.GoldHitFile != nil && *s.GoldHitFile:
		e.gold = 1
	}
	return e
}

// keepLatest removes evidence whose text occurs again later, and views whose lines are
// viewed again later.
func keepLatest(all []evidence) []evidence {
	seen := map[string]bool{}
	var out []evidence
	for _, e := range slices.Backward(all) {
		place := "place " + e.Tool + " " + strings.Join(e.Targets, " ")
		if seen["text "+e.SHA256] || len(e.Targets) > 0 && e.Tool == "view" && seen[place] {
			continue
		}
		seen["text "+e.SHA256], seen[place] = true, true
		out = append(out, e)
	}
	slices.Reverse(out)
	return out
}

// fileOfTarget returns the file of a target: path[:start-end] or path::symbol.
func fileOfTarget(target string) string {
	path, _, _ := strings.Cut(target, ":")
	return path
}
