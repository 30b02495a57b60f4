package metrics

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Behaviour fills the behavior and count columns of an episode from its step rows. The
// rows must be complete except for Train and MaskReason.
func Behaviour(e *schemas.EpisodeRow, rows []schemas.StepRow) {
	turns := map[string]map[int32]bool{} // turns by action kind; "pdb" is an additional kind
	all := map[int32]bool{}              // all turns
	var calls, errs, formats, repeats, explore, tests int32
	var run, longest int32
	anyError, edited := false, false
	for _, r := range rows {
		if r.TurnIndex == nil {
			continue
		}
		turn := *r.TurnIndex
		all[turn] = true
		mark(turns, r.ActionKind, turn)
		if r.IsError != nil && *r.IsError {
			errs++
			anyError = true
		}
		if r.FormatError != nil && *r.FormatError {
			formats++
		}
		if r.ToolName == nil {
			continue
		}
		calls++
		if run++; r.RepeatOf == nil {
			run = 0
		} else {
			repeats++
		}
		longest = max(longest, run)
		if schemas.CallRefused(schemas.Value(r.ErrorClass)) {
			continue
		}
		if Category(*r.ToolName) == "pdb" {
			mark(turns, "pdb", turn)
		}
		switch r.ActionKind {
		case SeekStatic, SeekDynamic:
			if !edited {
				explore++
			}
		case Verify:
			tests++
		case Edit:
			if !edited && succeeded(r) {
				e.FirstEditTurn, edited = new(turn), true
			}
		}
	}
	count := func(kinds ...string) *int32 {
		set := map[int32]bool{}
		for _, k := range kinds {
			for t := range turns[k] {
				set[t] = true
			}
		}
		return new(int32(len(set)))
	}
	e.NSteps, e.NTurns, e.NToolCalls = int32(len(rows)), int32(len(all)), &calls
	e.NSeek, e.NEdit, e.NExec, e.NVerify, e.NPDB = count(SeekStatic, SeekDynamic), count(Edit), count(Exec), count(Verify), count("pdb")
	e.NErrors, e.NFormatErrors = &errs, &formats
	e.NExploreBeforeEdit, e.NTestRuns = &explore, &tests
	e.NRepeats, e.MaxRepeatRun = &repeats, &longest
	if calls > 0 {
		e.LoopScore = new(float64(repeats) / float64(calls))
	}
	e.UsedDebugger = new(*e.NPDB > 0)
	e.DebugToEditPatterns = new(int32(DebugToEdit(rows)))
	e.NBacktracks = backtracks(rows)
	e.SatisfiedCriteria = Criteria(rows, e.Resolved)
	if e.Resolved != nil {
		e.Recovered = new(anyError && *e.Resolved)
	}
}

// succeeded reports whether a call ended without an error.
func succeeded(r schemas.StepRow) bool { return r.IsError == nil || !*r.IsError }

// LastChange returns the index of the last step that is known to have changed the workspace. It
// returns nil if there is none or if a later command may have changed files.
func LastChange(rows []schemas.StepRow) *int32 {
	var last *int32
	for _, r := range rows {
		switch {
		case r.ActionKind == Edit && succeeded(r) || len(r.FilesChanged) > 0:
			last = new(r.StepIndex)
		case r.ActionKind == Exec:
			last = nil
		}
	}
	return last
}

func mark(turns map[string]map[int32]bool, kind string, turn int32) {
	if turns[kind] == nil {
		turns[kind] = map[int32]bool{}
	}
	turns[kind][turn] = true
}

// backtracks counts the steps that returned the workspace to an earlier state. It returns nil if
// no row has a workspace hash.
func backtracks(rows []schemas.StepRow) *int32 {
	var n int32
	seen, last := map[string]bool{}, ""
	for _, r := range rows {
		if r.WorkspaceSHA256 == nil {
			continue
		}
		if hash := *r.WorkspaceSHA256; hash != last {
			if seen[hash] {
				n++
			}
			seen[hash], last = true, hash
		}
	}
	if last == "" {
		return nil
	}
	return &n
}

// Repeats fills repeat_of. A call repeats an earlier one if its name, arguments and observation are
// the same. A debugger command, such as "next", is no repeat as long as the program advances or a
// breakpoint is hit once more.
func Repeats(rows []schemas.StepRow) {
	first := map[[4]string]int32{}
	for i := range rows {
		r := &rows[i]
		if r.ObservationSHA256 == nil || r.ToolName == nil || r.ArgumentsJSON == nil {
			continue
		}
		key := [4]string{*r.ToolName, *r.ArgumentsJSON, *r.ObservationSHA256}
		if Category(*r.ToolName) == "pdb" {
			key[3] = schemas.Value(r.BreakpointsJSON) // with hits, which tell one pass of a loop from the next
		}
		if at, ok := first[key]; ok {
			r.RepeatOf = &at
		} else {
			first[key] = r.StepIndex
		}
	}
}

// Values of mask_reason.
const (
	MaskCopied    = "copied"
	MaskSynthetic = "synthetic"
	MaskGold      = "gold"
	MaskFormat    = "format_error"
	MaskTool      = "tool_error"
	MaskLeak      = "after_leak" // also in the row that leaks
	MaskRepeat    = "repeat"
)

// Mask fills train and mask_reason, the default loss mask: a model is trained on a turn of the
// agent unless there is a reason not to. Other rows are context, with train false and mask_reason
// null. leaked is the index of the first row whose call matched a leak rule, or -1. That row is masked
// as well as those after it, because a model must not learn the call. A non-zero exit code does not
// mask a turn, because a failing test is not an error of the model.
//
// If gold is true, the policy knew the fix, and all turns are masked, because its steps need not
// follow from the transcript. Otherwise the first row with GoldEdit and all rows after it are masked for
// this reason: a model must not learn to submit a fix that it did not derive.
func Mask(rows []schemas.StepRow, leaked int, gold bool) {
	isTrue := func(b *bool) bool { return b != nil && *b }
	for i := range rows {
		r := &rows[i]
		r.Train, r.MaskReason = false, nil
		if r.Source != "agent" {
			continue
		}
		gold = gold || isTrue(r.GoldEdit)
		reason := ""
		switch {
		case isTrue(r.IsCopiedContext):
			reason = MaskCopied
		case isTrue(r.Synthetic):
			reason = MaskSynthetic
		case gold:
			reason = MaskGold
		case isTrue(r.FormatError):
			reason = MaskFormat
		case isTrue(r.IsError) && (r.ErrorClass == nil || *r.ErrorClass != schemas.ErrNonzeroExit):
			reason = MaskTool
		case leaked >= 0 && i >= leaked:
			reason = MaskLeak
		case r.RepeatOf != nil:
			reason = MaskRepeat
		}
		if r.Train = reason == ""; !r.Train {
			r.MaskReason = &reason
		}
	}
}

// Gold fills the columns that compare an episode with the gold patch. These columns must not
// become part of a text that a model reads.
func Gold(e *schemas.EpisodeRow, rows []schemas.StepRow, patch, gold Patch) {
	goldFiles := slices.DeleteFunc(slices.Clone(gold.Files), schemas.IsTest)
	if len(goldFiles) == 0 {
		return
	}
	touched := map[string]bool{} // files that the agent read or changed
	for i := range rows {
		r := &rows[i]
		for _, f := range r.FilesChanged {
			touched[f] = true
		}
		if r.Source != "agent" || r.ToolName == nil || r.Observation == nil {
			continue
		}
		command := ""
		if r.ArgumentsJSON != nil && Category(*r.ToolName) == "bash" {
			command = *r.ArgumentsJSON
		}
		hitFile, hitHunk := gold.shownIn(goldFiles, command, *r.Observation)
		for _, t := range r.Targets {
			name, first, last := splitTarget(t)
			if Category(*r.ToolName) != "listdir" {
				touched[name] = true
			}
			if slices.Contains(goldFiles, name) {
				hitFile = true
				hitHunk = hitHunk || first > 0 && gold.hits(name, first, last)
			}
		}
		r.GoldHitFile, r.GoldHitHunk = &hitFile, &hitHunk
	}
	var found, edited int // numbers of gold files
	for _, f := range goldFiles {
		if touched[f] {
			found++
		}
		if slices.Contains(patch.Files, f) {
			edited++
		}
	}
	e.GoldFileRecall = new(float64(found) / float64(len(goldFiles)))
	if len(touched) > 0 {
		e.GoldFilePrecision = new(float64(found) / float64(len(touched)))
	}
	e.GoldEditFileRecall = new(float64(edited) / float64(len(goldFiles)))
	e.GoldPatchSimilarity = new(patch.Similarity(gold))
}

// splitTarget splits a target of the form path, path:line, path:start-end or path::symbol. first
// and last are 0 if it has no line numbers.
func splitTarget(t string) (file string, first, last int64) {
	if name, _, ok := strings.Cut(t, "::"); ok {
		return name, 0, 0
	}
	name, lines, ok := strings.Cut(t, ":")
	if !ok {
		return t, 0, 0
	}
	from, to, ranged := strings.Cut(lines, "-")
	first, err := strconv.ParseInt(from, 10, 64)
	if err != nil {
		return name, 0, 0
	}
	last = first
	if ranged {
		if last, err = strconv.ParseInt(to, 10, 64); err != nil {
			last = first
		}
	}
	return name, first, last
}
