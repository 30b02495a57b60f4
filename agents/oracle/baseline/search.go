package baseline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/oracle/write"
	"github.com/tracesmith/tracesmith/schemas"
)

const (
	maxAttempts    = 3 // functions that a baseline tries for each stop
	minInspections = 2 // that succeed at a stop, if the first maxInspections allow it
	maxInspections = 4
)

// search is the state of an episode, which follows from its steps.
type search struct {
	*write.Notes
	cfg         Config
	entrypoint  string // runs the tests
	options     []write.Option
	last        schemas.Step  // the last call
	word        string        // the debugger command of the last call, without its arguments, "" = another tool
	breakpoints []write.Place // the ones that the baseline has set, or tried to set
	inspections int           // since the program was last continued
	failed      int           // of inspections
	ranking     *string       // the answer to the ranking command, nil before it
}

func newSearch(b *baseline, t *agents.Transcript) *search {
	s := &search{Notes: write.Read(t), cfg: b.cfg, entrypoint: t.Task.Entrypoint}
	s.Seed = b.seed
	s.options = s.Options()
	for _, step := range t.Steps {
		if step.ToolCall != nil && step.Observation != nil {
			s.add(step)
		}
	}
	return s
}

func (s *search) add(step schemas.Step) {
	s.last, s.word = step, ""
	switch step.ToolCall.Name {
	case bashTool:
		s.ranking = &step.Observation.Text
	case "pdb":
		var args struct{ Command string }
		_ = json.Unmarshal(step.ToolCall.Arguments, &args) // the baseline wrote them
		word, rest, _ := strings.Cut(args.Command, " ")
		s.word = word
		switch word {
		case "tbreak":
			at := write.Place{}
			at.File, rest, _ = strings.Cut(rest, ":")
			_, _ = fmt.Sscan(rest, &at.Line)
			s.breakpoints = append(s.breakpoints, at)
		case "c":
			s.inspections, s.failed = 0, 0
		case "a", "p":
			s.inspections++
			if step.Observation.IsError {
				s.failed++
			}
		}
	}
}

// next returns the next turn.
func (s *search) next() schemas.Reply {
	for _, kind := range []string{write.RunTests, write.ReadTest, write.ReadStart} {
		if reply, ok := s.take(kind, nil); ok {
			return reply
		}
	}
	if s.Test == nil {
		return s.giveUp()
	}
	if reply, ok := s.take(write.Outline, func(o write.Option) bool { return o.Place.File == "" }); ok {
		return reply
	}
	if s.cfg.Order == "ochiai" && s.ranking == nil {
		return s.rank()
	}
	if reply, ok := s.debug(); ok {
		return reply
	}
	return s.follow(orders[s.cfg.Order](s))
}

// take returns the turn that takes the first option of a kind that satisfies has; nil accepts every option. ok is false
// if package write offers no such option.
func (s *search) take(kind string, has func(write.Option) bool) (reply schemas.Reply, ok bool) {
	for _, o := range s.options {
		if o.Kind == kind && (has == nil || has(o)) {
			return o.Reply(s.Calls), true
		}
	}
	return schemas.Reply{}, false
}

func (s *search) giveUp() schemas.Reply {
	reply, _ := s.take(write.GiveUp, nil) // is always offered
	return reply
}

// ask returns a turn with a call that package write does not offer.
func (s *search) ask(message, tool string, args map[string]any) schemas.Reply {
	call := schemas.NewToolCall(tool, args)
	call.ID = fmt.Sprintf("call_%d", s.Calls+1)
	return schemas.Reply{Message: message, Claims: []schemas.Claim{}, FinishReason: "tool_calls", Calls: []schemas.ToolCall{call}}
}

// debug runs the program to the last breakpoint and prints values there. ok is false if there is nothing left to do.
func (s *search) debug() (reply schemas.Reply, ok bool) {
	stop := s.At()
	switch isSet := s.word == "tbreak" && !s.last.Observation.IsError; {
	case isSet && stop != nil:
		return s.ask("The program may have passed that line already, so I start it again.", "pdb", map[string]any{"command": "restart"}), true
	case isSet, s.word == "restart", s.word == "c" && stop == nil && s.Waits():
		return s.take(write.Continue, nil)
	case stop == nil || stop.Place != s.breakpoints[len(s.breakpoints)-1]:
		return schemas.Reply{}, false
	}
	if reply, ok = s.take(write.Arguments, nil); ok {
		return reply, true
	}
	for _, expression := range []string{s.Operands(stop.Place), s.Evaluated(stop.Place)} {
		if reply, ok = s.take(write.Print, func(o write.Option) bool { return o.Expression == expression }); ok {
			return reply, true
		}
	}
	if s.inspections-s.failed < minInspections && s.inspections < maxInspections {
		return s.take(write.Print, nil)
	}
	return schemas.Reply{}, false
}

// follow goes toward the first function in which the baseline has set no breakpoint. It gives up after enough functions.
func (s *search) follow(leads []write.Place) schemas.Reply {
	stops := 0
	for _, p := range s.breakpoints {
		if s.WasStopped(p) {
			stops++
		}
	}
	var seen []write.Place
	for _, p := range leads {
		f, known := s.FunctionAt(p)
		if known {
			p = f.Place
		}
		if slices.Contains(seen, p) {
			continue
		}
		if seen = append(seen, p); stops == s.cfg.Stops || len(seen) > maxAttempts*s.cfg.Stops {
			break
		}
		if reply, ok := s.toward(p, f); ok {
			return reply
		}
	}
	return s.giveUp()
}

// toward sets a breakpoint at the first statement of a function, or reads the function. If f is empty, it reads the code
// at p, because the function is not known yet.
func (s *search) toward(p write.Place, f write.Function) (reply schemas.Reply, ok bool) {
	if slices.ContainsFunc(s.breakpoints, func(at write.Place) bool {
		other, _ := s.FunctionAt(at)
		return other.Place == f.Place
	}) {
		return schemas.Reply{}, false
	}
	if reply, ok = s.take(write.Break, func(o write.Option) bool { return o.Temporary && o.Function.Place == f.Place }); ok {
		return reply, true
	}
	if reply, ok = s.take(write.ReadBody, func(o write.Option) bool { return o.Place == p }); ok {
		return reply, true
	}
	if s.ranking != nil && !s.IsShown(p) {
		return s.readRanked(p), true
	}
	return s.take(write.ReadBody, func(o write.Option) bool {
		return o.Place.File == p.File && o.Place.Line <= p.Line && p.Line <= o.Last
	})
}
