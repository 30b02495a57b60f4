package metrics

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents/shown"
	"github.com/tracesmith/tracesmith/schemas"
)

// handover reads an accepted call of handover. Only the first one counts.
func (s *seeker) handover(row *schemas.StepRow) {
	if s.pack != nil || Category(schemas.Value(row.ToolName)) != "handover" || row.Observation == nil || !succeeded(*row) || schemas.CallRefused(schemas.Value(row.ErrorClass)) {
		return
	}
	var args packArguments
	if json.Unmarshal([]byte(schemas.Value(row.ArgumentsJSON)), &args) != nil {
		return
	}
	s.pack = &packSeen{lines: map[linePlace]bool{}}
	texts := []string{args.Cause}
	shownThen := s.excerpts(row, args)
	for i, f := range args.Files {
		name := s.Relative(f.Path)
		texts = append(texts, name, f.Note)
		for n := f.Start; n <= max(f.Start, f.End) && n-f.Start < maxLine; n++ {
			l, ok := shownThen[excerptLine{i, n}]
			if !ok {
				l.Number = s.base.line(name, n)
			}
			texts = append(texts, l.Text)
			if l.Number > 0 {
				s.pack.lines[linePlace{name, l.Number}] = true
				s.declare(&s.pack.order, name, l.Number)
			}
		}
	}
	for _, v := range args.Values {
		texts = append(texts, v.Expression, v.Value, v.Note)
	}
	s.pack.text = strings.Join(texts, "\n")
}

// packArguments are the arguments of handover.
type packArguments struct {
	Cause string `json:"cause"`
	Files []struct {
		Path  string `json:"path"`
		Start int    `json:"start"`
		End   int    `json:"end"`
		Step  int    `json:"step"`
		Note  string `json:"note"`
	} `json:"files"`
	Values []struct {
		Expression string `json:"expression"`
		Value      string `json:"value"`
		Note       string `json:"note"`
	} `json:"values"`
}

// excerptLine is a line of an excerpt in the numbering of the step that showed it.
type excerptLine struct{ excerpt, line int }

// excerpts returns the lines of the excerpts as their steps showed them, with their numbers in base.
func (s *seeker) excerpts(handover *schemas.StepRow, args packArguments) map[excerptLine]shown.Line {
	out := map[excerptLine]shown.Line{}
	base := newBaseMap(s.Workspace)
	for i := range s.Rows {
		row, read := &s.Rows[i], &s.Readings[i]
		if row == handover {
			break
		}
		if row.Source != "agent" {
			continue
		}
		for _, l := range read.Lines {
			for j, f := range args.Files {
				if f.Step == int(row.StepIndex) && s.Relative(f.Path) == l.File {
					out[excerptLine{j, l.Number}] = shown.Line{File: l.File, Number: base.line(l.File, l.Number), Text: l.Text}
				}
			}
		}
		base.apply(read, row)
	}
	return out
}

// packLevels compares the pack with the fix.
func (s *seeker) packLevels() *PackSeen {
	files, functions, found := map[string]bool{}, 0, [3]int{}
	for at := range s.pack.lines {
		if !files[at.file] {
			files[at.file] = true
			if s.gold.files[at.file] != nil {
				found[0]++
			}
		}
		if f := s.gold.files[at.file]; f != nil && f.lines[at.line] {
			found[2]++
		}
	}
	out := &PackSeen{
		File: newLevel(len(s.gold.files), len(files), found[0]),
		Line: newLevel(s.gold.nLines, len(s.pack.lines), found[2]),
	}
	if s.gold.functions != nil {
		for _, name := range s.pack.order {
			functions++
			if s.gold.functions[name] {
				found[1]++
			}
		}
		out.Function = newLevel(len(s.gold.functions), functions, found[1])
	}
	if s.gold.nLines > 0 {
		out.Sufficient = new(found[2] == s.gold.nLines)
	}
	return out
}

// declared compares what the agent changed or handed over with the fix.
func (s *seeker) declared() *Declared {
	files, lines := map[string]bool{}, map[linePlace]bool{}
	var order []string
	switch {
	case s.Patch != nil && len(s.Patch.Files) > 0:
		for _, name := range s.Patch.Files {
			if !schemas.IsTest(name) {
				files[name] = true
			}
		}
		for name, changes := range s.Patch.changes {
			for _, c := range changes {
				for _, n := range c.lines() {
					if !schemas.IsTest(name) {
						lines[linePlace{name, n}] = true
					}
				}
			}
		}
		order = s.changedFunctions()
	case s.pack != nil:
		for at := range s.pack.lines {
			files[at.file] = true
		}
		lines, order = s.pack.lines, s.pack.order
	default:
		return nil
	}
	return s.compareDeclared(files, lines, order)
}

// changedFunctions returns the functions that the patch changes: first those in the order of the
// agent's edits, then those that it changed in another way.
func (s *seeker) changedFunctions() []string {
	var all []string
	for _, name := range s.Patch.Existing {
		if schemas.IsTest(name) {
			continue
		}
		known := s.Functions[name]
		for _, c := range s.Patch.changes[name] {
			for _, at := range c.functions(known) {
				if f := name + "::" + known[at].Name; !slices.Contains(all, f) {
					all = append(all, f)
				}
			}
		}
	}
	rank := func(f string) int {
		if i := slices.Index(s.editOrder, f); i >= 0 {
			return i
		}
		return len(s.editOrder)
	}
	slices.SortStableFunc(all, func(a, b string) int { return rank(a) - rank(b) })
	return all
}

func (s *seeker) compareDeclared(files map[string]bool, lines map[linePlace]bool, order []string) *Declared {
	found := [3]int{}
	for name := range files {
		if s.gold.files[name] != nil {
			found[0]++
		}
	}
	for at := range lines {
		if f := s.gold.files[at.file]; f != nil && f.lines[at.line] {
			found[2]++
		}
	}
	out := &Declared{File: setF1(len(s.gold.files), len(files), found[0])}
	if s.gold.nLines > 0 {
		out.Line = setF1(s.gold.nLines, len(lines), found[2])
	}
	if len(s.gold.functions) > 0 {
		out.FunctionRank, out.NDCG5 = new(0.0), new(0.0)
		ideal := 0.0
		for i, name := range order {
			gain := 1 / math.Log2(float64(i+2))
			if s.gold.functions[name] {
				if found[1]++; found[1] == 1 {
					out.FunctionRank = new(1 / float64(i+1))
				}
				if i < 5 {
					*out.NDCG5 += gain
				}
			}
		}
		for i := range min(5, len(s.gold.functions)) {
			ideal += 1 / math.Log2(float64(i+2))
		}
		*out.NDCG5 /= ideal
		out.Function = setF1(len(s.gold.functions), len(order), found[1])
	}
	if out.Function != nil && out.Line != nil {
		out.Sum = new(*out.File + *out.Function + *out.Line)
	}
	return out
}

// setF1 returns the F1 of a declared set, which is 0 if nothing was declared.
func setF1(gold, declared, found int) *float64 {
	return Ratio(2*found, gold+declared)
}
