package metrics

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// debug reads a step of the debugger.
func (s *seeker) debug(row *schemas.StepRow, read *Reading) {
	if row.ToolName == nil || Category(*row.ToolName) != "pdb" || row.Observation == nil || schemas.CallRefused(schemas.Value(row.ErrorClass)) {
		return
	}
	s.used = true
	commands := debuggerCommands(read.Call.Command)
	requested := 0
	for _, c := range commands {
		word, rest, _ := strings.Cut(strings.TrimSpace(c), " ")
		switch word {
		case "b", "break", "tbreak":
			if strings.TrimSpace(rest) != "" {
				requested++
			}
		}
	}
	if requested > 0 {
		s.setBreakpoints(*row.Observation, requested)
	}
	s.paused(row, read)
	s.inspect(commands, read.Answer)
}

// setBreakpoints counts the breakpoints that an answer confirms.
func (s *seeker) setBreakpoints(text string, requested int) {
	accepted := 0
	for line := range strings.SplitSeq(text, "\n") {
		file, n, ok := confirmedBreakpoint(line)
		if !ok || accepted == requested {
			continue
		}
		accepted++
		point := s.place(file, n)
		known := false
		for _, p := range s.points {
			known = known || p.file == point.file && p.line == point.line
		}
		if !known {
			s.points = append(s.points, point)
		}
	}
	s.requested += requested
	s.accepted += accepted
}

// place returns a place in lines of base.
func (s *seeker) place(file string, n int) breakpoint {
	file = s.Relative(file)
	if base := s.base.line(file, n); base > 0 {
		n = base
	}
	return breakpoint{file: file, line: n}
}

var confirmed = regexp.MustCompile(`^Breakpoint (?:\d+(?: set| was already there; it is now)? at ([^:]+):(\d+)(.*)|already exists at line (\d+) in (.*?)\.?)$`)

// confirmedBreakpoint reads a line such as "Breakpoint 1 at FILE:12", "Breakpoint 1 set at FILE:12" or
// "Breakpoint 1 was already there; it is now at FILE:12", and debug-gym's "Breakpoint already exists
// at line 12 in FILE."
func confirmedBreakpoint(line string) (file string, n int, ok bool) {
	m := confirmed.FindStringSubmatch(line)
	if m == nil || strings.HasSuffix(m[3], "deleted") || strings.Contains(m[3], " was removed") {
		return "", 0, false
	}
	n, err := strconv.Atoi(m[2] + m[4])
	return m[1] + m[5], n, err == nil
}

// paused records where the program is stopped after a step.
func (s *seeker) paused(row *schemas.StepRow, read *Reading) {
	file, n := schemas.Value(row.FrameFile), int(schemas.Value(row.FrameLine))
	if row.BreakpointsJSON == nil && file == "" { // another harness, which records no frames
		file, n = read.paused.file, read.paused.line
	}
	if file == "" {
		return
	}
	at := s.place(file, n)
	s.pause = schemas.Breakpoint{File: at.file, Line: at.line}
	for i := range s.points {
		if s.points[i].file == at.file && s.points[i].line == at.line {
			s.points[i].hit = true
		}
	}
	if s.gold == nil || s.gold.files[at.file] == nil {
		return
	}
	gold := s.gold.files[at.file]
	s.lineHit = s.lineHit || gold.near(at.line)
	if function := functionOf(s.Functions[at.file], at.line); function >= 0 && gold.functions[function] && s.rootStep == 0 {
		s.rootStep, s.rootPoints = s.t, len(s.points)
	}
}

// inspect counts the inspections of a step. An inspection is dead if it raises one of three errors or
// repeats an expression at the same pause. args and locals() are one inspection for each name.
func (s *seeker) inspect(commands []string, answer []AnswerItem) {
	for _, c := range commands {
		word, _, _ := strings.Cut(c, " ")
		if runs[word] {
			s.inspected = nil
			continue
		}
		name := shownExpression(c)
		if word != "a" && word != "args" && name != "locals()" && name != "vars()" {
			s.inspectName(name)
			continue
		}
		for _, item := range answer {
			if item.Kind == ValueItem && item.Command == c {
				s.inspectName(item.Name)
			}
		}
	}
	for _, item := range answer {
		switch name, _, _ := strings.Cut(item.Text, ":"); name {
		case "NameError", "AttributeError", "SyntaxError":
			if item.Kind == ErrorItem && s.dead < s.inspections {
				s.dead++
			}
		}
	}
}

func (s *seeker) inspectName(name string) {
	if name == "" {
		return
	}
	if s.inspected == nil {
		s.inspected = map[string]bool{}
	}
	s.inspections++
	if s.inspected[name] {
		s.dead++
	}
	s.inspected[name] = true
}

func (d *debugState) result(out *Seeking) {
	if !d.used {
		return
	}
	out.BreakpointsValid = Ratio(d.accepted, d.requested)
	hit := 0
	for _, p := range d.points {
		if p.hit {
			hit++
		}
	}
	out.BreakpointsHit = Ratio(hit, len(d.points))
	out.DeadInspections = Ratio(d.dead, d.inspections)
}

// rootHits fills in whether the debugger reached the fix. Without a call of the debugger, it is not
// applicable.
func (s *seeker) rootHits(g *GoldSeeking) {
	if !s.used {
		return
	}
	if s.gold.nLines > 0 {
		g.RootLineHit = new(s.lineHit)
	}
	if len(s.gold.functions) == 0 {
		return
	}
	g.RootHit = new(s.rootStep > 0)
	if s.rootStep > 0 {
		g.BreakpointsToRoot, g.StepsToRoot = new(int32(s.rootPoints)), new(int32(s.rootStep))
	}
	best := -1
	for _, p := range s.points {
		gold, functions := s.gold.files[p.file], s.Functions[p.file]
		at := functionOf(functions, p.line)
		if gold == nil || at < 0 {
			continue
		}
		d := gold.distance(p.line, func(n int) bool { return functionOf(functions, n) == at })
		if d >= 0 && (best < 0 || d < best) {
			best = d
		}
	}
	if best >= 0 {
		g.BreakpointDistance = new(int32(best))
	}
}
