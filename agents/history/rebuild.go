package history

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Rebuild returns the messages that the reply of row n answered. It uses only the rows of the
// episode: those of the same conversation before row n, and context_op_json of row n. If the rows
// still hold the text that was sent, llms.PromptSHA256 of the result is the row's prompt_sha256.
//
// tracesmith itself calls CheckPrompts. Rebuild is the reference for programs that read
// datasets, and tests compare it with what servers received.
func Rebuild(rows []schemas.StepRow, n int) ([]llms.Message, error) {
	steps, err := Steps(rows[:n])
	if err != nil {
		return nil, err
	}
	return promptOf(steps, rows[n])
}

// CheckPrompts reports for each row whether Rebuild returns the prompt that was sent. The result
// for a row without a prompt is nil.
func CheckPrompts(rows []schemas.StepRow) []*bool {
	out := make([]*bool, len(rows))
	steps, err := Steps(rows)
	prompts := map[string]*rebuiltPrompt{} // by phase
	for i := range rows {
		if rows[i].PromptSHA256 == nil {
			continue
		}
		op, opErr := contextOpOfRow(rows[i])
		if err != nil || opErr != nil { // a row cannot be read
			out[i] = new(false)
			continue
		}
		phase := schemas.Value(rows[i].Phase)
		if prompts[phase] == nil {
			prompts[phase] = &rebuiltPrompt{}
		}
		out[i] = new(prompts[phase].prompt(steps[:i], phase, op) == *rows[i].PromptSHA256)
	}
	return out
}

// rebuiltPrompt is the last prompt of a phase that was rebuilt. Most prompts extend the previous
// one by a turn, so extending it is cheaper than starting over.
type rebuiltPrompt struct {
	list  messageList
	steps int // number of steps in list
	hash  llms.PromptHash
}

// prompt returns the hash of the prompt after steps, which must extend those of the last call.
func (c *rebuiltPrompt) prompt(steps []schemas.Step, phase string, op schemas.ContextOp) string {
	if !reflect.DeepEqual(op, c.list.op) {
		c.list, c.steps = messageList{op: op}, 0
	}
	for i := range steps[c.steps:] {
		if s := &steps[c.steps+i]; s.Phase == phase {
			c.list.add(s)
		}
	}
	c.steps = len(steps)
	return c.hash.SHA256(c.list.complete())
}

// promptOf returns the prompt of the reply in a row that follows steps.
func promptOf(steps []schemas.Step, reply schemas.StepRow) ([]llms.Message, error) {
	op, err := contextOpOfRow(reply)
	if err != nil {
		return nil, err
	}
	var samePhase []schemas.Step
	for _, s := range steps {
		if s.Phase == schemas.Value(reply.Phase) {
			samePhase = append(samePhase, s)
		}
	}
	return Messages(samePhase, op), nil
}

// contextOpOfRow returns the operation that made the prompt of a reply.
func contextOpOfRow(reply schemas.StepRow) (op schemas.ContextOp, err error) {
	if text := schemas.Value(reply.ContextOpJSON); text != "" {
		if err := json.Unmarshal([]byte(text), &op); err != nil {
			return op, fmt.Errorf("context_op_json of step %d: %w", reply.StepIndex, err)
		}
	}
	return op, nil
}

// Steps converts rows to steps. It fills in only the fields that prompts show.
func Steps(rows []schemas.StepRow) ([]schemas.Step, error) {
	var out []schemas.Step
	var reply *schemas.Reply // the current turn's
	for i := range rows {
		r := &rows[i]
		s := schemas.Step{Index: int(r.StepIndex), Turn: -1, Call: -1, Source: r.Source, Phase: schemas.Value(r.Phase)}
		if r.CallIndex != nil {
			s.Call = int(*r.CallIndex)
		}
		switch {
		case r.TurnIndex == nil:
			s.Text = r.Message
		case s.Call <= 0:
			s.Turn = int(*r.TurnIndex)
			reply = &schemas.Reply{Message: r.Message}
			s.Reply = reply
		default:
			s.Turn = int(*r.TurnIndex)
		}
		if r.ToolName != nil {
			if reply == nil {
				return nil, fmt.Errorf("step %d is a call, but no reply comes before it", r.StepIndex)
			}
			s.ToolCall = &schemas.ToolCall{ID: schemas.Value(r.ToolCallID), Name: *r.ToolName, Arguments: json.RawMessage(schemas.Value(r.ArgumentsJSON))}
			reply.Calls = append(reply.Calls, *s.ToolCall)
		}
		if r.Observation != nil {
			s.Observation = &schemas.Observation{Text: *r.Observation}
		}
		if more := schemas.Value(r.TriggeredJSON); more != "" {
			if err := json.Unmarshal([]byte(more), &s.Triggered); err != nil {
				return nil, fmt.Errorf("triggered_json of step %d: %w", r.StepIndex, err)
			}
		}
		out = append(out, s)
	}
	return out, nil
}
