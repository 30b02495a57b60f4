package audit

import (
	"strings"
	"sync"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// Padding fills is_padding and padding_share. A step is padding if it shows no fact that is new, does not run the program to
// a stop, prints no value for the first time at one, does not test an edit, and shows no number or name for the first time that a
// later step uses. Edits, and calls that end the work, are never padding. r is the record of the rows, whose is_new_information is filled in.
func Padding(e *schemas.EpisodeRow, rows []schemas.StepRow, r *Record) {
	shows := r.newValues()
	used := sync.OnceValue(func() []bool { return usedTokens(rows) })
	untested := true // something has changed since the last test run
	calls, padding := 0, 0
	for i := range rows {
		row := &rows[i]
		if row.Source != "agent" || row.ToolName == nil || row.IsNewInformation == nil {
			continue
		}
		is := !*row.IsNewInformation && !shows[int(row.StepIndex)] && !used()[i]
		switch row.ActionKind {
		case metrics.Edit, metrics.Submit, metrics.Handover, metrics.Think:
			is = false
			untested = untested || row.ActionKind == metrics.Edit
		case metrics.Verify:
			is = is && !untested
			untested = false
		case metrics.Exec:
			untested = true
		}
		row.IsPadding = &is
		calls++
		if is {
			padding++
		}
	}
	e.PaddingShare = metrics.Ratio(padding, calls)
}

// newValues returns the steps that let the program run to a stop, or print a value for the first time at one.
func (r *Record) newValues() map[int]bool {
	type printed struct {
		stop, up         int
		expression, text string
	}
	seen, out := map[printed]bool{}, map[int]bool{}
	for _, s := range r.Stops {
		out[s.Step] = true
	}
	for _, v := range r.Values {
		p := printed{v.Stop, v.Up, v.Expression, metrics.ValueText(v.Text)}
		if !seen[p] && v.Stop >= 0 {
			seen[p] = true
			out[v.Step] = true
		}
	}
	return out
}

// tokens calls use with a hash of each number and of each name of at least two characters.
func tokens(text string, use func(uint64)) {
	for i := 0; i < len(text); i++ {
		start, h := i, uint64(14695981039346656037) // FNV-1a
		for ; i < len(text) && isWordByte(text[i]); i++ {
			h = (h ^ uint64(text[i])) * 1099511628211
		}
		if i > start+1 || i > start && text[start] <= '9' {
			use(h)
		}
	}
}

// usedTokens reports for each row whether its observation shows a number or a name first, and a later step uses it.
func usedTokens(rows []schemas.StepRow) []bool {
	first, out := make(map[uint64]int, 16*len(rows)), make([]bool, len(rows))
	use := func(t uint64) {
		if at, known := first[t]; !known {
			first[t] = -1 // the agent knew it
		} else if at >= 0 {
			out[at] = true
		}
	}
	for i := range rows {
		row := &rows[i]
		tokens(row.Message, use)
		if row.Source != "agent" {
			continue
		}
		tokens(schemas.Value(row.ArgumentsJSON), use)
		text := schemas.Value(row.Observation)
		if at := strings.LastIndex(text, "\nCurrent frame:"); at >= 0 && metrics.Category(schemas.Value(row.ToolName)) == "pdb" {
			text = text[:at]
		}
		tokens(text, func(t uint64) {
			if _, known := first[t]; !known {
				first[t] = i
			}
		})
	}
	return out
}
