package metrics

import (
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
)

// window is the default of the criteria's parameter max_steps_between, in steps.
const window = 10

// toolStep is a tool call, or a reply without one. pdb is the debugger command, or "".
type toolStep struct{ category, pdb string }

func toolSteps(rows []schemas.StepRow) []toolStep {
	var out []toolStep
	for _, r := range rows {
		if r.Source != "agent" {
			continue
		}
		out = append(out, toolStep{category: categoryOf(&r), pdb: schemas.Value(r.PDBCommand)})
	}
	return out
}

// Criteria evaluates the twelve trajectory criteria (column satisfied_criteria) with
// their default parameters and returns the sorted names of those that are met.
// uses_specific_pdb_command, which has no default parameter, appears once per command.
// Edits count as rewrites. A blank debugger command matches no criterion.
func Criteria(rows []schemas.StepRow, resolved *bool) []string {
	steps := toolSteps(rows)
	met := []string{}
	add := func(ok bool, name string) {
		if ok {
			met = append(met, name)
		}
	}
	pdb := countOf(steps, func(s toolStep) bool { return s.category == "pdb" })
	edits := countOf(steps, func(s toolStep) bool { return s.category == "edit" })
	patterns := DebugToEdit(rows)
	prints := func(s toolStep) bool { return s.pdb == "p" || s.pdb == "pp" || s.pdb == "print" }
	breaks := func(s toolStep) bool { return s.pdb == "b" || s.pdb == "break" || s.pdb == "tbreak" }
	continues := func(s toolStep) bool { return s.pdb == "c" || s.pdb == "cont" || s.pdb == "continue" }
	isPDB := func(s toolStep) bool { return s.category == "pdb" }
	isEdit := func(s toolStep) bool { return s.category == "edit" }

	add(resolved != nil && *resolved, "has_successful_outcome")
	add(pdb > 0, "has_consecutive_pdb_calls")
	add(slices.ContainsFunc(steps, prints), "uses_pdb_print_commands")
	for _, c := range pdbCommands(steps) {
		met = append(met, "uses_specific_pdb_command("+c+")")
	}
	add(inOrder(steps, isPDB, isEdit), "has_rewrite_after_pdb")
	add(patterns > 0, "has_rewrite_soon_after_pdb")
	add(patterns > 0, "count_debug_to_code_patterns")
	add(patterns > 0, "has_sufficient_debug_to_code_patterns")
	add(inOrder(steps, breaks, continues), "has_continue_after_setting_breakpoints")
	add(inOrder(steps, breaks, continues, prints), "follows_proper_debugging_workflow")
	add(len(steps)+1 >= 5, "has_minimum_trajectory_length") // the reset counts as a step
	add(edits >= 1, "has_sufficient_code_changes")
	slices.Sort(met)
	return met
}

// DebugToEdit counts the debugger calls that are followed by an edit within ten steps.
func DebugToEdit(rows []schemas.StepRow) int {
	steps := toolSteps(rows)
	n := 0
	for i, s := range steps {
		if s.category != "pdb" {
			continue
		}
		soon := steps[i+1 : min(len(steps), i+1+window)]
		if slices.ContainsFunc(soon, func(s toolStep) bool { return s.category == "edit" }) {
			n++
		}
	}
	return n
}

func countOf(steps []toolStep, is func(toolStep) bool) (n int) {
	for _, s := range steps {
		if is(s) {
			n++
		}
	}
	return n
}

// inOrder reports whether steps contain matches of the conditions in this order, with or without
// other steps in between.
func inOrder(steps []toolStep, conds ...func(toolStep) bool) bool {
	for _, s := range steps {
		if conds[0](s) {
			if conds = conds[1:]; len(conds) == 0 {
				return true
			}
		}
	}
	return false
}

// pdbCommands returns the different debugger commands, sorted.
func pdbCommands(steps []toolStep) []string {
	var out []string
	for _, s := range steps {
		if s.pdb != "" {
			out = append(out, s.pdb)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
