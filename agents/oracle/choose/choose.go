// Package choose is the privileged half of the oracle. It knows the fix and the paired trace, and
// picks one of the actions that package write offers. It returns an index and nothing else, so no
// text can depend on what it knows.
package choose

import (
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents/oracle/write"
	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

const (
	maxCalls     = 45 // of an episode, after which it ends
	maxContinues = 6  // commands that run to the next breakpoint
	maxBreaks    = 7  // breakpoints, after which the chooser looks for no other place
	maxMissed    = 2  // runs without a stop, after which it looks for no other place
	maxVisits    = 3  // stops at the same line, after which it takes what it has
	maxDeeper    = 2  // commands in a row that led to the same line in a deeper call, after which it does not run on
	maxEmpty     = 3  // stops at which it printed nothing, after which it looks for no other value
)

// Chooser picks actions that lead to the cause of one bug.
type Chooser struct {
	// Explains makes the chooser name the cause before a change that is not derived, instead of ending the episode.
	Explains bool

	trace schemas.PairedTrace
	fix   fix
	aims  []aim

	found  bool   // the episode has printed a value that differs
	early  bool   // the current stop comes before the one that the chooser wants
	detour string // the statement of an experiment that is plausible but wrong, "" = none
	wrong  string // the statement of an edit that is plausible but wrong, "" = none
}

// New returns a chooser for a bug with a gold patch and the paired trace of one failing test.
func New(trace schemas.PairedTrace, goldPatch string) (*Chooser, error) {
	f, err := readFix(goldPatch)
	if err != nil {
		return nil, err
	}
	c := &Chooser{trace: trace, fix: f}
	c.aims = c.findAims()
	return c, nil
}

// Choose returns the index of the option with the highest value:
//
//	1000, 1001  the only sensible action
//	700 to 799  print or evaluate something where the program is paused
//	600 to 699  leave the stop: run on, or edit
//	500         run the program to a breakpoint
//	400 to 499  set a breakpoint at the fix or at a value that differs, or read what shows the fix
//	100 to 399  search for and read functions that lead to the fix
//	1 to 99     other breakpoints, and the end without an edit
func (c *Chooser) Choose(n *write.Notes, options []write.Option) int {
	c.found, c.early, c.detour = c.hasEvidence(n), false, ""
	if stop := n.At(); stop != nil {
		c.early = c.isEarly(n, *stop)
		c.detour = c.findDetour(n, *stop, options)
	}
	c.wrong = c.findWrongEdit(n, options)
	best, most := len(options)-1, 0.0
	for i, o := range options {
		if v := c.value(n, o); v > most {
			best, most = i, v
		}
	}
	return best
}

func (c *Chooser) value(n *write.Notes, o write.Option) float64 {
	switch {
	case o.Kind == write.Undo && c.fix.replaced[o.Place] != o.Statement:
		return 1001
	case o.Kind == write.RunTests || o.Kind == write.Submit || o.Kind == write.ReadStart:
		return 1000
	case o.Kind == write.RunAlone && o.Test == c.trace.Test:
		return 1001
	case o.Kind == write.ReadTest && o.Test == c.trace.Test:
		return 1000
	case o.Kind == write.RunAlone:
		return 0
	case o.Kind == write.ReadTest:
		return 1
	case o.Kind == write.Wait:
		return 998
	case o.Kind == write.Where && n.At() == nil:
		return 999
	case n.Calls > maxCalls && o.Kind != write.Conclude && o.Kind != write.Explain && o.Kind != write.Edit && o.Kind != write.HandOver:
		return 0
	}
	if stop := n.At(); stop != nil {
		if v := c.valueAtStop(n, *stop, o); v > 0 {
			return v
		}
	}
	switch o.Kind {
	case write.List:
		if n.Draw(6, "list") == 0 && len(n.Stops) == 0 {
			return 499
		}
	case write.Break:
		return c.valueOfBreak(n, o)
	case write.Compare:
		switch {
		case o.Place.File == "":
			return 1000
		case c.found && c.fix.within(o.Place, o.Last):
			return 655
		case c.fix.within(o.Place, o.Last):
			return 405
		}
	case write.Continue:
		if n.Waits() {
			return 500
		}
	case write.ReadBody, write.Find, write.FindSetting, write.Outline:
		if !c.fixWasReached(n) {
			return c.valueOfReading(o)
		}
		if !c.found && n.Runs() < maxRuns && !o.Unexplained && o.Kind != write.FindSetting {
			return c.valueOfReadingOn(n, o)
		}
	}
	return c.valueOfEnd(n, o)
}

func (c *Chooser) valueOfBreak(n *write.Notes, o write.Option) float64 {
	rank, isAim := c.aimAt(n, o.Place, o.Function.Name)
	isAim = isAim && !c.isFruitless(n)
	switch {
	case o.Temporary != c.isOnce(n, o.Place, o.Function.Name) || n.WasStopped(o.Place) || n.Breaks >= maxBreaks || n.Missed >= maxMissed || isLooping(n):
		return 0
	case c.fixWasReached(n):
		if isAim && !c.found && n.Runs() < maxRuns && c.provedAt(n) < 0 {
			return 460 - rank
		}
		return 0
	case len(n.Stops) == 0 && n.Draw(2, "caller") == 0 && c.callsFix(o) && c.isRun(o.Place):
		return 497
	case len(n.Stops) == 0 && n.Draw(3, "entry") == 0 && o.IsEntry && c.leadsToFix(o):
		return 496
	case c.fix.within(o.Place, o.Last) && c.isRun(o.Place):
		return 495
	case c.fix.distance(o.Place) < 20 && c.isRun(o.Place) && c.inPath(o.Function):
		return 90 - float64(c.fix.distance(o.Place))
	case isAim:
		return 60 - rank
	}
	return 0
}

// isOnce reports whether the program needs to stop at a place only once.
func (c *Chooser) isOnce(n *write.Notes, p write.Place, function string) bool {
	return n.HasOwnFrame(p) || c.wantedHit(n, p, function) == 1 && (c.runs(p) == 1 || !c.fix.within(p, n.Span(p)))
}

// callsFix reports whether the statement of a breakpoint calls the function that the fix changes, on the way of the failing test.
func (c *Chooser) callsFix(o write.Option) bool {
	last := len(c.trace.Path) - 1
	if last < 1 {
		return false
	}
	_, function, _ := strings.Cut(c.trace.Path[last], ":")
	file, caller, _ := strings.Cut(c.trace.Path[last-1], ":")
	return o.Function.File == file && o.Function.Name == bare(caller) && slices.Contains(o.Calls, bare(function))
}

// leadsToFix reports whether a breakpoint is in the function that the fix changes, above the fix, and both lines run once.
func (c *Chooser) leadsToFix(o write.Option) bool {
	p, ok := c.fixedLine(o.Place)
	return ok && c.inPath(o.Function) && c.runs(o.Place) == 1 && c.runs(p) == 1
}

// fixedLine returns the first line of the fix in the twenty lines below a place.
func (c *Chooser) fixedLine(above write.Place) (write.Place, bool) {
	for line := above.Line + 1; line <= above.Line+20; line++ {
		if p := (write.Place{File: above.File, Line: line}); c.fix.lines[p] && c.isRun(p) {
			return p, true
		}
	}
	return write.Place{}, false
}

// isCaller reports whether the program is paused where the function that the fix changes is called, and nowhere else before.
func (c *Chooser) isCaller(n *write.Notes, stop write.Stop) bool {
	return len(n.Stops) == 1 && stop.Event == "line" && !c.fix.within(stop.Place, n.Span(stop.Place))
}

// findDetour returns the statement of a plausible but wrong experiment at the first stop at which there is one, or "". Some
// episodes have one.
func (c *Chooser) findDetour(n *write.Notes, stop write.Stop, options []write.Option) string {
	right := c.fix.replaced[stop.Place]
	if n.Draw(5, "detour") > 1 || c.early || n.Tries() > 0 || right == "" || !c.isAtFix(n, stop) {
		return ""
	}
	var plausible []string
	for _, o := range options {
		if o.Kind == write.Try && o.IsTypical && o.Statement != right && o.Place == stop.Place {
			plausible = append(plausible, o.Statement)
		}
	}
	if len(plausible) == 0 {
		return ""
	}
	return plausible[n.Draw(uint64(len(plausible)), "which")]
}

// findWrongEdit returns the statement of an edit that an experiment supports but that is wrong, once the right one is also
// possible, or "". Some episodes make it first and take it back.
func (c *Chooser) findWrongEdit(n *write.Notes, options []write.Option) string {
	wrong, canFix := "", false
	for _, o := range options {
		switch {
		case o.Kind != write.Edit || n.Undone:
		case c.fix.isReplacement(o.Place, o.Statement):
			canFix = true
		case o.Tried && !o.Raises && c.fix.replaced[o.Place] != "":
			wrong = o.Statement
		}
	}
	if !canFix || n.Draw(5, "wrong edit") > 0 {
		return ""
	}
	return wrong
}

// isRun reports whether the failing test runs a line.
func (c *Chooser) isRun(p write.Place) bool {
	return slices.ContainsFunc(c.trace.Stops, func(s schemas.TracedLines) bool { return s.File == p.File && s.Line == p.Line })
}

// valueOfReading values reading and searching by how close it comes to the cause along the calls that lead there.
func (c *Chooser) valueOfReading(o write.Option) float64 {
	first := o.Place
	if o.Function.Name == "" { // a place in the traceback, with the lines above it
		first.Line -= write.LinesBefore
	}
	if o.Kind == write.ReadBody && !o.Function.IsClass && c.fix.reads(first, o.Last) {
		if o.Unexplained {
			return 130
		}
		return 490
	}
	if o.Kind == write.FindSetting {
		isValue := strings.ToUpper(o.Function.Name) == o.Function.Name
		if isValue && (c.trace.D0 == nil || !strings.HasPrefix(c.trace.D0.Function, "<")) {
			return 0
		}
		return 145
	}
	if o.Kind == write.ReadBody && o.Function.Name == "" && c.isRun(o.Place) {
		return 330 // a place in the traceback
	}
	if o.Kind == write.ReadBody && testcmd.IsTestFile(o.Function.File) {
		return 240 // a helper of the test
	}
	for i := len(c.trace.Path) - 1; i >= 0; i-- {
		file, function, _ := strings.Cut(c.trace.Path[i], ":")
		names := strings.Split(function, ".")
		last := names[len(names)-1]
		if class := o.Function.Class; class != "" && o.Function.Name == last && len(names) > 1 && names[len(names)-2] != class && names[len(names)-2] != "<locals>" {
			continue // a method of another class
		}
		isMore := o.Place != o.Function.Place // lines after those that were read
		switch {
		case o.Kind == write.ReadBody && o.Function.File == file && o.Function.Name == last && isMore:
			return 160 + float64(i)/10
		case o.Kind == write.ReadBody && o.Function.File == file && o.Function.Name == last && !o.Function.IsClass && o.Unexplained:
			return 120 + float64(i)/10
		case o.Kind == write.ReadBody && o.Function.File == file && o.Function.Name == last && !o.Function.IsClass:
			return 300 + float64(i)
		case o.Kind == write.Find && o.Function.Name == last && !strings.HasPrefix(last, "__"):
			return 250 + float64(i)
		case o.Kind == write.ReadBody && !o.Unexplained && o.Function.File == file && len(names) > 1 && o.Function.Name == names[len(names)-2]:
			return 200 + float64(i)
		case o.Kind == write.Find && len(names) > 1 && o.Function.Name == names[len(names)-2]:
			return 150 + float64(i)
		case o.Kind == write.Outline && o.Place.File == file && i == len(c.trace.Path)-1:
			return 140
		}
	}
	if o.Kind == write.Outline && c.fix.files[o.Place.File] {
		return 120
	}
	if o.Kind == write.Outline && o.Place.File == "" {
		return 100
	}
	return 0
}

// valueOfReadingOn values reading and searching, once the program has stopped at the fix, by whether the function has a value that
// differs.
func (c *Chooser) valueOfReadingOn(n *write.Notes, o write.Option) float64 {
	for i, a := range c.aims {
		if o.Function.Name != "" && a.function == o.Function.Name && (o.Kind == write.Find || a.place.File == o.Function.File) && len(c.news(n, a)) > 0 {
			return 450 - float64(i)/float64(len(c.aims))
		}
	}
	return 0
}

// fixWasReached reports whether the program has stopped at the fix.
func (c *Chooser) fixWasReached(n *write.Notes) bool {
	return slices.ContainsFunc(n.Stops, func(s write.Stop) bool { return c.fix.within(s.Place, n.Span(s.Place)) })
}

func (c *Chooser) inPath(f write.Function) bool {
	return slices.ContainsFunc(c.trace.Path, func(p string) bool {
		file, name, _ := strings.Cut(p, ":")
		return file == f.File && (name == f.Name || strings.HasSuffix(name, "."+f.Name))
	})
}
