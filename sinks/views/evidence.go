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
	State   string   `json:"state"` // fresh, or stale if a file that it shows was changed before the final edit

	call, text string
	gold       int // 2 if it showed a hunk of the gold patch, 1 if it showed a file of it
}

// gatherEvidence collects the evidence of an episode by a policy. It leaves out failed
// calls, texts shown twice, and all but the latest view of a place.
func gatherEvidence(t sinks.Trajectory, policy string) []evidence {
	final := len(t.Steps) // the last step that changed something
	for i := range t.Steps {
		if changes(&t.Steps[i]) {
			final = i
		}
	}
	var out []evidence
	base := ""
	for i := range t.Steps {
		s := &t.Steps[i]
		if sha := schemas.Value(s.WorkspaceSHA256); sha != "" {
			if base == "" && !changes(s) {
				base = sha
			}
			if policy == "base-state" && sha != base {
				break
			}
		}
		if i >= final || policy == "base-state" && changes(s) {
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
			e.State = "fresh" // for the patch, which applies to the base state
		}
		out = append(out, e)
	}
	out = latest(out)
	if policy == "gold-ranked" {
		slices.SortStableFunc(out, func(a, b evidence) int { return cmp.Compare(b.gold, a.gold) })
	}
	return out
}

// changes reports whether a step changed files.
func changes(s *schemas.StepRow) bool {
	return len(s.FilesChanged) > 0 || s.ActionKind == "edit" && (s.IsError == nil || !*s.IsError)
}

// evidenceOf returns the evidence of a step; between are the steps from it to the final
// edit.
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
			if slices.ContainsFunc(s.Targets, func(target string) bool { return placeOf(target) == file }) {
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

// latest keeps only the last evidence with the same text, and the last view of
// the same place.
func latest(all []evidence) []evidence {
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

// placeOf returns the file of a target: path[:start-end] or path::symbol.
func placeOf(target string) string {
	path, _, _ := strings.Cut(target, ":")
	return path
}
