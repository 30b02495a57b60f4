package metrics

import (
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Evidence is what the metrics of information seeking are computed from, besides the rows.
type Evidence struct {
	Workdir   string                // absolute path of the workspace; "" if unknown
	Patch     *Patch                // of the agent; nil if unknown
	Gold      *Patch                // nil if the task has none
	Functions map[string][]Function // functions of the Python files of base, by path; nil if unknown
}

// Seeking holds what an agent looked at, and how that compares with the reference fix. A nil pointer
// is unknown or not applicable. docs/decisions/metrics.md defines each value. The parts that depend
// on the fix are Gold and what GoldNew returns.
type Seeking struct {
	Redundancy        *float64 // C6
	BreakpointsValid  *float64 // B1
	BreakpointsHit    *float64 // B2
	DeadInspections   *float64 // V4
	InvalidCalls      *float64 // P2
	LongestCommandRun *int32   // P3
	LongestCallRun    *int32   // P3
	BlindEdits        *int32   // P4
	Pack              *string  // text of the handed-over pack, for counting its tokens
	Gold              *GoldSeeking

	steps []stepCount
}

// stepCount counts the lines that a step showed. known is false if its format is unknown.
type stepCount struct {
	row               int
	known             bool
	shown, new, found int
}

// GoldSeeking compares with the reference fix. It is the value of column gold_seeking_json.
type GoldSeeking struct {
	File     *Level `json:"file,omitempty"`
	Function *Level `json:"function,omitempty"`
	Line     *Level `json:"line,omitempty"`

	EvidenceDrop *float64  `json:"evidence_drop,omitempty"` // C7
	Declared     *Declared `json:"declared,omitempty"`
	Pack         *PackSeen `json:"pack,omitempty"`

	RootHit            *bool    `json:"root_hit,omitempty"`            // B3
	RootLineHit        *bool    `json:"root_line_hit,omitempty"`       // B3l
	BreakpointsToRoot  *int32   `json:"breakpoints_to_root,omitempty"` // B4
	StepsToRoot        *int32   `json:"steps_to_root,omitempty"`       // B4
	BreakpointDistance *int32   `json:"breakpoint_distance,omitempty"` // B5
	UsefulSteps        *float64 `json:"useful_steps,omitempty"`        // P6
}

// Seek computes the metrics of information seeking of an episode. It does not change the rows.
func Seek(rows []schemas.StepRow, evidence Evidence) Seeking {
	s := newSeeker(evidence)
	s.rows = rows
	for i := range rows {
		if rows[i].Source == "agent" {
			s.step(i, &rows[i])
		}
	}
	return s.result(rows)
}

// seeker follows an episode step by step.
type seeker struct {
	Evidence
	rows    []schemas.StepRow
	gold    *goldSet // nil if there is no fix to compare with
	reader  reader
	base    baseMap
	files   map[string]*fileSeen
	current string // name of last, which saves a look-up for most lines
	last    *fileSeen

	t                          int // number of the agent's steps
	steps                      []stepCount
	shown, again               int // lines shown; those among them that an earlier step had shown
	opaque                     bool
	foundLines, foundFunctions int
	seenLines, seenFunctions   int
	foundFiles                 int
	first                      [3]int // steps that first showed a file, a function and a line of the fix
	area                       [3]int // sums over the steps of the number of those found
	useful                     int
	lastResult                 *evaluation

	texts      map[linePlace]string // texts of the gold lines that were seen
	edited     map[linePlace]bool
	editOrder  []string // functions in the order of their first edits
	blindEdits int
	edits      int
	pack       *packSeen
	debugState
	process
}

// linePlace is a line of a file of base.
type linePlace struct {
	file string
	line int
}

// fileSeen holds what an agent has seen of a file of base.
type fileSeen struct {
	lastShown []int32 // number of the last step that showed a line, by line; 0 if none did
	functions []bool  // seen, by index of Function
	owner     []int32 // index of the innermost function + 1, by line; nil if the functions are unknown
	gold      *goldFile
}

// has reports whether a line was seen.
func (f *fileSeen) has(n int) bool { return n < len(f.lastShown) && f.lastShown[n] > 0 }

func newSeeker(evidence Evidence) *seeker {
	s := &seeker{
		Evidence: evidence, reader: reader{workdir: evidence.Workdir}, base: baseMap{map[string]*fileMap{}}, files: map[string]*fileSeen{},
		edited: map[linePlace]bool{}, texts: map[linePlace]string{},
	}
	if evidence.Gold != nil {
		s.gold = newGoldSet(*evidence.Gold, evidence.Functions)
	}
	return s
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
func (s *seeker) step(index int, row *schemas.StepRow) {
	s.t++
	read := s.reader.read(row)
	found := s.foundLines
	count := stepCount{row: index, known: !read.isOpaque}
	for _, name := range read.files {
		s.file(name)
	}
	for i := range read.lines {
		l := &read.lines[i]
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
	s.opaque = s.opaque || read.isOpaque
	count.found = s.foundLines - found
	s.steps = append(s.steps, count)
	s.debug(row)
	for _, e := range s.base.apply(&s.reader, row) {
		s.edit(e)
	}
	s.handover(row)
	s.call(row)
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

// evaluation is the result of an evaluation of the tests.
type evaluation struct {
	score          float64
	passed, failed int32
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
func (s *seeker) result(rows []schemas.StepRow) Seeking {
	out := Seeking{steps: s.steps}
	readable := s.shown > 0 || !s.opaque // otherwise nothing is known about what the agent saw
	if readable {
		out.Redundancy = ratio(s.again, s.shown)
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
		g.EvidenceDrop = s.evidenceDrop(rows)
		if s.gold.nLines > 0 {
			g.UsefulSteps = ratio(s.useful, s.t)
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
func (s *seeker) evidenceDrop(rows []schemas.StepRow) *float64 {
	if s.Patch != nil {
		for name, changes := range s.Patch.changes {
			for _, c := range changes {
				for _, n := range c.lines() {
					s.edited[linePlace{name, n}] = true
				}
			}
		}
	}
	answer := finalAnswer(rows)
	used := 0
	for at, text := range s.texts {
		text = strings.TrimSpace(text)
		isQuoted := len(text) >= minShownBytes && strings.Contains(answer, text)
		if s.edited[at] || isQuoted || s.pack != nil && s.pack.lines[at] {
			used++
		}
	}
	return ratio(len(s.texts)-used, len(s.texts))
}

// finalAnswer returns the text of the agent's last turn, with the arguments of submit.
func finalAnswer(rows []schemas.StepRow) string {
	for i := len(rows) - 1; i >= 0; i-- {
		if r := &rows[i]; r.Source == "agent" {
			answer := r.Message
			if Category(schemas.Value(r.ToolName)) == "submit" || schemas.Value(r.ToolName) == "finish" {
				answer += "\n" + textArguments(r)
			}
			return answer
		}
	}
	return ""
}
