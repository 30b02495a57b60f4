package choose

import (
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents/oracle/write"
	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

// aim is a stop that both versions reach, in a frame of the program, with variables that differ.
type aim struct {
	place    write.Place
	hit      int
	function string // its bare name
	isEnd    bool   // the function is about to return
	vars     []schemas.TraceValue
}

// maxHit is the highest hit of a line that an aim has, and maxRuns is the number of runs of the program after which the
// chooser looks for no other aim.
const (
	maxHit  = 20
	maxRuns = 3
)

// findAims returns the first differing values.
func (c *Chooser) findAims() []aim {
	var out []aim
	for _, p := range c.trace.Points {
		if testcmd.IsTestFile(p.File) || p.FixedEvent < 0 {
			continue
		}
		a := aim{place: write.Place{File: p.File, Line: p.Line}, hit: p.Hit, function: bare(p.Function), isEnd: p.Kind == "return"}
		for _, v := range p.Vars {
			if !strings.HasPrefix(v.Name, "<") && v.Buggy != "" {
				a.vars = append(a.vars, v)
			}
		}
		if len(a.vars) > 0 && (p.Kind == "line" && p.Hit <= maxHit || a.isEnd) {
			out = append(out, a)
		}
	}
	return out
}

// aimAt returns how late in the run the first aim at a line of a function comes, from 0 to 1.
func (c *Chooser) aimAt(n *write.Notes, p write.Place, function string) (rank float64, ok bool) {
	for i, a := range c.aims {
		if a.place == p && a.function == function && len(c.news(n, a)) > 0 {
			return float64(i) / float64(len(c.aims)), true
		}
	}
	return 0, false
}

// news returns the variables of an aim whose values the failing test has not reported.
func (c *Chooser) news(n *write.Notes, a aim) []string {
	var out []string
	for _, v := range a.vars {
		if !n.Reported(v.Buggy) {
			out = append(out, v.Name)
		}
	}
	return out
}

// valueAtStop values an action while the program is paused.
func (c *Chooser) valueAtStop(n *write.Notes, stop write.Stop, o write.Option) float64 {
	right := c.isAtFix(n, stop) && !c.early
	switch o.Kind {
	case write.Where:
		if c.isAtFix(n, stop) && n.Draw(3, "stack") == 0 {
			return 791
		}
	case write.Arguments:
		if !n.ShownArguments(o.Function) && (n.UsesArguments(stop.Place) || c.trace.D0 != nil && bare(c.trace.D0.Function) == stop.Function && c.runs(stop.Place) != 1) {
			return 790
		}
	case write.Print:
		if v := c.valueOfPrint(n, stop, o.Expression, right); v > 0 {
			return v
		}
	case write.Try:
		switch {
		case c.detour != "" && o.Statement == c.detour && o.Place == stop.Place:
			return 761
		case c.fix.replaced[o.Place] == o.Statement:
			return 760
		case c.fix.isReplacement(o.Place, o.Statement):
			return 759
		}
	case write.Repeat:
		if c.fix.exchanged[o.Place] {
			return 765
		}
	case write.Next:
		above := write.Place{File: stop.File, Line: stop.Line - 1}
		if right && (c.isSearching(n, stop) && c.isWorthwhile(n, stop) || c.fix.exchanged[stop.Place]) || c.fix.exchanged[above] && n.WasStopped(above) {
			return 690
		}
		if c.isSearching(n, stop) && c.returnsAt(stop) {
			return 665
		}
	case write.Narrow:
		if v := c.valueOfNarrow(stop, o); v > 0 {
			return v
		}
	case write.Skip:
		if c.early && stop.Hit > 0 && o.Count < c.wantedHit(n, stop.Place, stop.Function)-stop.Hit {
			return 696 + float64(o.Count)/100
		}
	case write.Continue:
		if n.Narrows() || n.Skips() {
			return 789
		}
		if c.early && n.Continues() < maxContinues {
			return 695
		}
	case write.Step:
		if c.isCaller(n, stop) && n.Draw(2, "step") == 0 && c.callsFix(o) && c.isFirstRun(n, o.Calls[0]) {
			return 694
		}
	case write.Until:
		isEntry := len(n.Stops) == 1 && stop.Event == "line" && !c.isAtFix(n, stop) && o.Function.Name == stop.Function
		if (stop.Event == "call" || isEntry) && c.fix.within(o.Place, o.Last) && c.isRun(o.Place) {
			return 693 - float64(o.Place.Line-stop.Line)/1000
		}
		if c.isSearching(n, stop) && !c.isFruitless(n) && slices.ContainsFunc(c.aims, func(a aim) bool { return a.place == o.Place }) {
			return 680 - float64(o.Place.Line-stop.Line)/100
		}
	case write.Return:
		if strings.HasPrefix(stop.Function, "<") {
			return 699
		}
		if c.isSearching(n, stop) && c.endDiffers(n, stop) {
			return 660
		}
	}
	return c.valueOfEnd(n, o)
}

// valueOfNarrow values a condition for the breakpoint at a stop.
func (c *Chooser) valueOfNarrow(stop write.Stop, o write.Option) float64 {
	value, known := c.trace.Arguments[o.Expression]
	isSame := known && unquoted(value) == unquoted(o.Instead)
	switch {
	case o.Statement != "" && c.fix.isReplacement(stop.Place, o.Statement):
		return 699
	case !c.early:
	case !o.Other && isSame:
		return 698
	case o.Other && known && !isSame && isLiteral(value):
		return 697
	}
	return 0
}

// valueOfPrint values printing an expression. right says that the program is paused at the fix, in the call that matters.
func (c *Chooser) valueOfPrint(n *write.Notes, stop write.Stop, expression string, right bool) float64 {
	switch {
	case c.hasRunFix(n) && expression == n.Result():
		return 785
	case c.provedAt(n) < 0 && (right && expression == write.Attributes(n.Evaluated(stop.Place)) || c.hasRunFix(n) && expression == write.Attributes(n.Result())):
		return 784
	case !c.found && slices.Contains(c.differing(n, stop), expression):
		return 780
	case (right || c.isCaller(n, stop)) && expression == n.Operands(stop.Place):
		return 775
	case c.hasRunFix(n) && stop.Event == "exception" && expression == n.Container(stop.Place):
		return 772
	case (right && c.provedAt(n) < 0 && (n.MustTryBefore(stop.Place) || c.fix.exchanged[stop.Place]) || c.isFar(n, stop)) && expression == n.Evaluated(stop.Place):
		return 770
	case strings.HasPrefix(stop.Condition, expression+" != "):
		return 788
	case c.early && len(stop.Values) == 0 && expression == n.Operands(stop.Place):
		return 696.9
	case c.isAtFix(n, stop) && c.provedAt(n) < 0 && expression == n.Evaluated(stop.Place):
		return 640
	}
	return 0
}

// isWorthwhile reports whether the program can show something new in the function if the statement at a stop runs: what the
// statement computes, or a value that differs.
func (c *Chooser) isWorthwhile(n *write.Notes, stop write.Stop) bool {
	if _, known := stop.Value(n.Evaluated(stop.Place)); !known || c.endDiffers(n, stop) {
		return true
	}
	return slices.ContainsFunc(c.aims, func(a aim) bool {
		return a.place.File == stop.File && a.function == stop.Function && len(c.news(n, a)) > 0
	})
}

// isSearching reports whether the chooser runs on in the function of a stop to find a value that differs. After a decisive experiment,
// it does so only until the same statement comes again.
func (c *Chooser) isSearching(n *write.Notes, stop write.Stop) bool {
	return !c.found && !c.isCaller(n, stop) && !c.comesAgain(n) && !isLooping(n) && deeper(n) < maxDeeper
}

// comesAgain reports whether the program has stopped at the statement of a decisive experiment once more.
func (c *Chooser) comesAgain(n *write.Notes) bool {
	proof := c.provedAt(n)
	return proof >= 0 && slices.ContainsFunc(n.Stops[proof+1:], func(s write.Stop) bool { return s.Place == n.Stops[proof].Place && s.Event == "line" })
}

// provedAt returns the index of the stop at which an experiment has shown that the fix makes a difference, or -1.
func (c *Chooser) provedAt(n *write.Notes) int {
	last := -1
	for p, statement := range c.fix.replaced {
		last = max(last, n.ProvedAt(p, statement))
	}
	return last
}

// isFruitless reports whether the program has often stopped where the agent found nothing to print.
func (c *Chooser) isFruitless(n *write.Notes) bool {
	empty := 0
	for _, s := range n.Stops {
		if len(s.Values) == 0 && !c.fix.within(s.Place, n.Span(s.Place)) {
			empty++
		}
	}
	return empty >= maxEmpty
}

// hasRunFix reports whether the stop before the last one was at the fix.
func (c *Chooser) hasRunFix(n *write.Notes) bool {
	last := len(n.Stops) - 2
	return last >= 0 && c.fix.within(n.Stops[last].Place, n.Span(n.Stops[last].Place))
}

// isAtFix reports whether the program is paused before a statement that the fix changes.
func (c *Chooser) isAtFix(n *write.Notes, stop write.Stop) bool {
	return stop.Event == "line" && c.fix.within(stop.Place, n.Span(stop.Place))
}

// valueOfEnd values the ends of the search. An edit can wait until a value that differs was printed.
func (c *Chooser) valueOfEnd(n *write.Notes, o write.Option) float64 {
	isRight := (o.Kind == write.Edit || o.Kind == write.HandOver && o.Tried) && c.fix.isReplacement(o.Place, o.Statement)
	switch {
	case o.Kind == write.Edit && o.Tried && o.Statement == c.wrong:
		return 652
	case isRight && (c.comesAgain(n) || n.Undone):
		return 795
	case isRight && c.found:
		return 650
	case isRight:
		return 400
	case o.Kind == write.Exchange && c.fix.exchanged[o.Place]:
		return 650
	case !c.fix.within(o.Place, o.Last) || o.Tried || o.Kind != write.HandOver && o.Kind != write.Explain && o.Kind != write.Conclude:
	case !c.found && c.couldFind(n) && !o.Raises && (o.Kind != write.Explain || c.Explains):
		return 1 // if it finds nothing else
	case o.Kind == write.HandOver:
		return 51
	case o.Kind == write.Explain && c.Explains:
		return 51
	case o.Kind == write.Conclude:
		return 50
	}
	return 0
}

// couldFind reports whether the failing test has a value that differs and that it does not report.
func (c *Chooser) couldFind(n *write.Notes) bool {
	return slices.ContainsFunc(c.aims, func(a aim) bool { return len(c.news(n, a)) > 0 })
}

// differing returns the variables that differ at a stop and whose values the failing test has not reported.
func (c *Chooser) differing(n *write.Notes, stop write.Stop) []string {
	for _, a := range c.aimsOf(stop) {
		return c.news(n, a)
	}
	return nil
}

// aimsOf returns the aims at the place of a stop; if its hit is known, only those of this hit.
func (c *Chooser) aimsOf(stop write.Stop) []aim {
	var out []aim
	for _, a := range c.aims {
		isStop := stop.Event == "line" && !a.isEnd && (stop.Hit == a.hit || stop.Hit == 0) || stop.Event == "return" && a.isEnd
		if isStop && a.place == stop.Place && a.function == stop.Function {
			out = append(out, a)
		}
	}
	return out
}

// mayBe reports whether a printed value can be that of a variable of an aim.
func (a aim) mayBe(name, text string) bool {
	for _, v := range a.vars {
		if v.Name == name {
			return mayBe(v.Buggy, text)
		}
	}
	return false
}

// maxTraced is the length at which the trace cuts a value. It appends a fingerprint.
const maxTraced = 160

// mayBe reports whether a value that the trace describes can be the one that was printed. Printing an object shows only
// its type and address, which do not differ.
func mayBe(traced, printed string) bool {
	if isLiteral(traced) && isLiteral(printed) {
		return unquoted(traced) == unquoted(printed)
	}
	if isObject := strings.HasPrefix(printed, "<") && strings.Contains(printed, " at 0x"); isObject || traced == "" || printed == "" {
		return false
	}
	if traced[0] != printed[0] || !strings.ContainsAny(traced[:1], "[({") || strings.Contains(printed, "...") {
		return true
	}
	isCut := len(traced) > maxTraced
	if isCut {
		traced = traced[:maxTraced]
	}
	isPlain := !strings.Contains(traced, " of ") && !strings.Contains(traced, "...") && !strings.Contains(traced, "=") && (traced[0] != '{' || strings.Contains(traced, ": "))
	return !isPlain || traced == printed || isCut && strings.HasPrefix(printed, traced)
}

// endDiffers reports whether the end of a function shows a value that differs and that the failing test has not reported: a
// variable, or what the function returns.
func (c *Chooser) endDiffers(n *write.Notes, stop write.Stop) bool {
	return slices.ContainsFunc(c.trace.Points, func(p schemas.TracePoint) bool {
		isHere := p.Kind == "return" && p.File == stop.File && bare(p.Function) == stop.Function && p.FixedEvent >= 0
		return isHere && slices.ContainsFunc(p.Vars, func(v schemas.TraceValue) bool {
			return v.Buggy != "" && v.Fixed != "" && v.Name != "<exit>" && !n.Reported(v.Buggy)
		})
	})
}

// returnsAt reports whether a function returns, or yields, at the line of a stop a value that differs.
func (c *Chooser) returnsAt(stop write.Stop) bool {
	return slices.ContainsFunc(c.aims, func(a aim) bool { return a.isEnd && a.place == stop.Place && a.function == stop.Function }) ||
		slices.ContainsFunc(c.trace.Points, func(p schemas.TracePoint) bool {
			return p.Kind == "return" && p.FixedEvent >= 0 && p.File == stop.File && p.Line == stop.Line && bare(p.Function) == stop.Function
		})
}

// returnDiffers reports whether what a function returns at a stop differs in the fixed program.
func (c *Chooser) returnDiffers(stop write.Stop) bool {
	return slices.ContainsFunc(c.trace.Points, func(p schemas.TracePoint) bool {
		isHere := p.Kind == "return" && p.File == stop.File && bare(p.Function) == stop.Function && p.FixedEvent >= 0
		return isHere && slices.ContainsFunc(p.Vars, func(v schemas.TraceValue) bool {
			return v.Name == "<return>" && v.Fixed != "" && aim{vars: p.Vars}.mayBe("<return>", stop.Returns)
		})
	})
}

// hasEvidence reports whether a printed value differs in the fixed program.
func (c *Chooser) hasEvidence(n *write.Notes) bool {
	for _, stop := range n.Stops {
		if stop.Returns != "" && !n.Reported(stop.Returns) && c.returnDiffers(stop) {
			return true
		}
		for _, a := range c.aimsOf(stop) {
			for _, name := range c.news(n, a) {
				if v, ok := stop.Value(name); ok && !v.IsError && a.mayBe(name, v.Text) {
					return true
				}
			}
		}
	}
	return false
}

func bare(qualified string) string { return qualified[strings.LastIndexByte(qualified, '.')+1:] }
