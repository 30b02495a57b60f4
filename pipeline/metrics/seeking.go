package metrics

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Seek computes the metrics of information seeking of an episode. It does not change the rows.
func Seek(episode *Episode, evidence Evidence) Seeking {
	s := &seeker{
		Evidence: evidence, Episode: episode, base: newBaseMap(episode.Workspace), files: map[string]*fileSeen{},
		edited: map[linePlace]bool{}, texts: map[linePlace]string{},
	}
	if evidence.Gold != nil {
		s.gold = newGoldSet(*evidence.Gold, evidence.Functions)
	}
	for i := range s.Rows {
		if s.Rows[i].Source == "agent" {
			s.step(i, &s.Rows[i], &s.Readings[i])
		}
	}
	return s.result()
}

// file returns what was seen of a file, and counts the file as seen.
func (s *seeker) file(name string) *fileSeen {
	if s.last != nil && s.current == name {
		return s.last
	}
	f := s.files[name]
	if f == nil {
		f = &fileSeen{}
		if functions := s.Functions[name]; functions != nil {
			f.functions, f.owner = make([]bool, len(functions)), owners(functions)
		}
		if s.gold != nil {
			if f.gold = s.gold.files[name]; f.gold != nil {
				s.foundFiles++
			}
		}
		s.files[name] = f
	}
	s.current, s.last = name, f
	return f
}

// owners returns the index of the innermost function + 1 for each line.
func owners(functions []Function) []int32 {
	last := 0
	for _, f := range functions {
		last = max(last, f.Last)
	}
	out := make([]int32, last+1)
	for i, f := range functions { // a nested function comes after the one around it
		for n := f.First; n <= f.Last; n++ {
			out[n] = int32(i + 1)
		}
	}
	return out
}

// step reads one step of the agent.
func (s *seeker) step(index int, row *schemas.StepRow, read *Reading) {
	s.t++
	found := s.foundLines
	count := stepCount{row: index, known: !read.IsOpaque}
	for _, name := range read.Files {
		s.file(name)
	}
	for i := range read.Lines {
		l := &read.Lines[i]
		f := s.file(l.File)
		n := s.base.line(l.File, l.Number)
		if n <= 0 || n > maxLine {
			continue
		}
		for n >= len(f.lastShown) {
			f.lastShown = append(f.lastShown, 0)
		}
		before := f.lastShown[n]
		if f.lastShown[n] = int32(s.t); before == int32(s.t) { // shown twice in this step
			continue
		}
		count.shown++
		if before > 0 {
			s.again++
			continue
		}
		count.new++
		s.see(f, l.File, n, l.Text)
	}
	s.shown += count.shown
	s.opaque = s.opaque || read.IsOpaque
	count.found = s.foundLines - found
	s.steps = append(s.steps, count)
	s.debug(row, read)
	for _, e := range s.base.apply(read, row) {
		s.edit(e)
	}
	s.handover(row)
	s.call(row, read)
	if s.evaluate(row) || count.found > 0 {
		s.useful++
	}
	for i, n := range []int{s.foundFiles, s.foundFunctions, s.foundLines} {
		s.area[i] += n
		if n > 0 && s.first[i] == 0 {
			s.first[i] = s.t
		}
	}
}

// see counts a line of a file that no earlier step has shown.
func (s *seeker) see(f *fileSeen, name string, n int, text string) {
	s.seenLines++
	if f.gold != nil && f.gold.lines[n] {
		s.foundLines++
		s.texts[linePlace{name, n}] = text
	}
	if n < len(f.owner) && f.owner[n] > 0 && !f.functions[f.owner[n]-1] {
		at := f.owner[n] - 1
		f.functions[at] = true
		s.seenFunctions++
		if f.gold != nil && f.gold.functions[int(at)] {
			s.foundFunctions++
		}
	}
}

// edit records an edit of the agent.
func (s *seeker) edit(e edit) {
	s.edits++
	f := s.files[e.file]
	if len(e.lines) > 0 && !slices.ContainsFunc(e.lines, func(n int) bool { return f != nil && f.has(n) }) {
		s.blindEdits++
	}
	for _, n := range e.lines {
		s.edited[linePlace{e.file, n}] = true
		s.declare(&s.editOrder, e.file, n)
	}
}

// declare appends the function of a line to a list, unless it is there already.
func (s *seeker) declare(list *[]string, file string, n int) {
	functions := s.Functions[file]
	if at := functionOf(functions, n); at >= 0 && !schemas.IsTest(file) {
		if name := file + "::" + functions[at].Name; !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
}

// evaluate reports whether a step has changed the result of the tests.
func (s *seeker) evaluate(row *schemas.StepRow) bool {
	if row.ScoreAfter == nil && row.TestsPassed == nil {
		return false
	}
	e := evaluation{schemas.Value(row.ScoreAfter), schemas.Value(row.TestsPassed), schemas.Value(row.TestsFailed)}
	changed := s.lastResult != nil && *s.lastResult != e
	s.lastResult = &e
	return changed
}

// result computes the ratios after the last step.
func (s *seeker) result() Seeking {
	out := Seeking{steps: s.steps}
	readable := s.shown > 0 || !s.opaque // otherwise nothing is known about what the agent saw
	if readable {
		out.Redundancy = Ratio(s.again, s.shown)
		out.BlindEdits = new(int32(s.blindEdits))
	}
	s.debugState.result(&out)
	s.process.result(&out)
	if s.pack != nil {
		out.Pack = &s.pack.text
	}
	if s.gold == nil || s.t == 0 {
		return out
	}
	g := &GoldSeeking{}
	out.Gold = g
	if readable {
		g.File = s.level(0, len(s.gold.files), len(s.files), s.foundFiles)
		g.Line = s.level(2, s.gold.nLines, s.seenLines, s.foundLines)
		if s.gold.functions != nil {
			g.Function = s.level(1, len(s.gold.functions), s.seenFunctions, s.foundFunctions)
		}
		g.EvidenceDrop = s.evidenceDrop()
		if s.gold.nLines > 0 {
			g.UsefulSteps = Ratio(s.useful, s.t)
		}
	}
	g.Declared = s.declared()
	if s.pack != nil {
		g.Pack = s.packLevels()
	}
	s.rootHits(g)
	return out
}

// evidenceDrop returns the share of the gold lines seen that the agent neither edited nor handed over
// nor quoted in its final answer.
func (s *seeker) evidenceDrop() *float64 {
	if s.Patch != nil {
		for name, changes := range s.Patch.changes {
			for _, c := range changes {
				for _, n := range c.lines() {
					s.edited[linePlace{name, n}] = true
				}
			}
		}
	}
	answer := finalAnswer(s.Rows)
	used := 0
	for at, text := range s.texts {
		text = strings.TrimSpace(text)
		isQuoted := len(text) >= minShownBytes && strings.Contains(answer, text)
		if s.edited[at] || isQuoted || s.pack != nil && s.pack.lines[at] {
			used++
		}
	}
	return Ratio(len(s.texts)-used, len(s.texts))
}

// finalAnswer returns the text of the agent's last turn, with the arguments of submit.
func finalAnswer(rows []schemas.StepRow) string {
	for i := len(rows) - 1; i >= 0; i-- {
		if r := &rows[i]; r.Source == "agent" {
			answer := r.Message
			if Category(schemas.Value(r.ToolName)) == "submit" || schemas.Value(r.ToolName) == "finish" {
				answer += "\n" + stringsOf(json.RawMessage(schemas.Value(r.ArgumentsJSON)))
			}
			return answer
		}
	}
	return ""
}

// level returns a level with the values that depend on the order of the steps. i is the index in first
// and area.
func (s *seeker) level(i, gold, seen, found int) *Level {
	l := newLevel(gold, seen, found)
	if s.first[i] > 0 {
		l.FirstContact = new(int32(s.first[i]))
	}
	if gold > 0 {
		l.RecallArea = new(float64(s.area[i]) / float64(gold) / float64(s.t))
	}
	return l
}
