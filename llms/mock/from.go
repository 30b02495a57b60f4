package mock

import (
	"github.com/tracesmith/tracesmith/schemas"
)

// FromEpisode returns sessions that repeat the answers of the models of a recorded episode:
// one session for each conversation, which the first user message identifies. The rows
// contain neither the faults of the model's server nor the form of its reasoning blocks, so
// the sessions do not contain them either.
func FromEpisode(e schemas.EpisodeRow, steps []schemas.StepRow) []Session {
	native := e.ToolCallStyle == nil || *e.ToolCallStyle == "native"
	var out []Session
	index := map[string]int{} // of the session of each phase
	turn := int32(-1)
	users := map[string]string{}
	for _, s := range steps {
		phase := schemas.Value(s.Phase)
		if s.Source == "user" && users[phase] == "" {
			users[phase] = s.Message
		}
		if s.Source != "agent" || s.LLMCallCount == nil && s.TurnIndex == nil || schemas.Value(s.IsCopiedContext) {
			continue
		}
		i, known := index[phase]
		if !known {
			i = len(out)
			index[phase] = i
			out = append(out, Session{User: users[phase]})
		}
		session := &out[i]
		if s.LLMCallCount != nil { // the first row of a turn
			if *s.LLMCallCount == 0 {
				turn = -1 // written by the policy, not by a model
				continue
			}
			turn = schemas.Value(s.TurnIndex)
			session.Turns = append(session.Turns, turnOf(s))
			session.Rewrites = session.Rewrites || s.ContextOp != nil && *s.ContextOp != schemas.ContextNone
		}
		if s.ToolName == nil || !native || turn < 0 || schemas.Value(s.TurnIndex) != turn {
			continue
		}
		last := &session.Turns[len(session.Turns)-1]
		last.ToolCalls = append(last.ToolCalls, callOf(s))
	}
	kept := out[:0]
	for _, s := range out {
		if len(s.Turns) > 0 {
			kept = append(kept, s)
		}
	}
	return kept
}

// turnOf returns a turn without its calls.
func turnOf(s schemas.StepRow) Turn {
	t := Turn{Reasoning: schemas.Value(s.Reasoning), FinishReason: schemas.Value(s.FinishReason)}
	if s.Message != "" || s.ToolName == nil {
		t.Content = &s.Message
	}
	if s.PromptTokens != nil || s.CompletionTokens != nil {
		t.Usage = &Usage{Prompt: schemas.Value(s.PromptTokens), Completion: schemas.Value(s.CompletionTokens), Cached: schemas.Value(s.CachedTokens), Reasoning: schemas.Value(s.ReasoningTokens)}
	}
	return t
}

// callOf returns a call with its arguments as the model wrote them.
func callOf(s schemas.StepRow) Call {
	raw := schemas.Value(s.ArgumentsJSON)
	if s.ArgumentsRaw != nil {
		raw = *s.ArgumentsRaw
	}
	return Call{ID: s.ToolCallID, Name: *s.ToolName, Raw: &raw}
}
