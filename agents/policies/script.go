package policies

import (
	"errors"
	"fmt"
	"iter"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/schemas"
)

// script is one run of a fixed procedure over a transcript.
type script struct {
	evidence *evidence
	past     []schemas.Step // calls of the transcript that the script has not repeated yet
	target   []goldSpot     // the lines that the gold patch touches; nil without a gold patch
	last     schemas.Step   // the step that answered the latest turn
	count    int            // calls so far
	failing  failure        // the test that the script follows
	read     []definition   // functions that it has read
	yield    func(schemas.Reply) bool
}

func newScript(t *agents.Transcript, target []goldSpot) *script {
	s := &script{evidence: newEvidence(t), target: target}
	for _, step := range t.Steps {
		if step.ToolCall != nil {
			s.past = append(s.past, step)
		}
	}
	return s
}

// next runs the procedure from the beginning, feeds it the recorded observations, and returns the
// first turn that has none. It therefore depends only on the transcript, and a resumed episode
// needs no other state.
func (s *script) next(procedure func(*script) error) (schemas.Reply, error) {
	for reply := range s.turns(procedure) {
		if len(s.past) == 0 {
			return reply, nil
		}
		s.last, s.past = s.past[0], s.past[1:]
		s.evidence.add(s.last)
	}
	return schemas.Reply{}, errors.New("the script is over, but the episode is not")
}

// errStopped unwinds the script when the consumer of its turns stops.
var errStopped = errors.New("the consumer stopped")

// turns yields the turns of the procedure. Before it continues, the consumer must set
// s.last to the step that answers the turn.
func (s *script) turns(procedure func(*script) error) iter.Seq[schemas.Reply] {
	return func(yield func(schemas.Reply) bool) {
		s.yield = yield
		switch err := procedure(s); {
		case err == nil, errors.Is(err, errStopped):
		case errors.Is(err, errNoEvidence):
			s.stop(sayNoEvidence(s.failing, s.read), schemas.ExitNoEvidence)
		default:
			s.stop(sayNothingFound(), schemas.ExitGaveUp)
		}
	}
}

// act makes a turn with one call. If it returns nil, s.last has the observation. It
// returns errStopped if the transcript does not have the observation.
func (s *script) act(m message, tool string, args map[string]any) error {
	return s.do(m, schemas.NewToolCall(tool, args))
}

// do is act with a complete call.
func (s *script) do(m message, call schemas.ToolCall) error {
	s.count++
	call.ID = fmt.Sprintf("call_%d", s.count)
	reply := m.reply()
	reply.Calls, reply.FinishReason = []schemas.ToolCall{call}, "tool_calls"
	if !s.yield(reply) {
		return errStopped
	}
	return nil
}

// stop makes the last turn.
func (s *script) stop(m message, exit string) {
	reply := m.reply()
	reply.Stop = exit
	s.yield(reply)
}

// failed reports whether the last call failed.
func (s *script) failed() bool { return s.last.Observation == nil || s.last.Observation.IsError }
