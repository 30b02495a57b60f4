package history

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Rebuild makes the message list that the reply of row n was asked with, from
// the rows of an episode alone: those of its conversation before it, as its
// context_op_json says. llms.PromptSHA256 of it is the row's prompt_sha256 where
// the rows still say what was sent.
func Rebuild(rows []schemas.StepRow, n int) ([]llms.Message, error) {
	steps, err := Steps(rows[:n])
	if err != nil {
		return nil, err
	}
	return promptOf(steps, rows[n])
}

// PromptsRebuild tells for each row whether Rebuild finds the prompt that was sent; nil
// where no model was asked.
func PromptsRebuild(rows []schemas.StepRow) []*bool {
	out := make([]*bool, len(rows))
	steps, err := Steps(rows)
	told := map[string]*rebuiltPrompt{} // by phase
	for i := range rows {
		if rows[i].PromptSHA256 == nil {
			continue
		}
		op, bad := contextOpOfRow(rows[i])
		if err != nil || bad != nil { // one row cannot be read: none is vouched for
			out[i] = new(false)
			continue
		}
		phase := value(rows[i].Phase)
		if told[phase] == nil {
			told[phase] = &rebuiltPrompt{}
		}
		out[i] = new(told[phase].prompt(steps[:i], phase, op) == *rows[i].PromptSHA256)
	}
	return out
}

// rebuiltPrompt is the conversation of a phase as far as it was rebuilt: most prompts are the one before
// them and a turn more.
type rebuiltPrompt struct {
	list  messageList
	steps int // that were looked at
	hash  llms.PromptHash
}

// prompt is the hash of the prompt after steps, with which those of the last one begin.
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

// promptOf is the prompt of a reply after steps.
func promptOf(steps []schemas.Step, reply schemas.StepRow) ([]llms.Message, error) {
	op, err := contextOpOfRow(reply)
	if err != nil {
		return nil, err
	}
	var own []schemas.Step
	for _, s := range steps {
		if s.Phase == value(reply.Phase) {
			own = append(own, s)
		}
	}
	return Messages(own, op), nil
}

// contextOpOfRow says how the prompt of a reply was made.
func contextOpOfRow(reply schemas.StepRow) (op schemas.ContextOp, err error) {
	if text := value(reply.ContextOpJSON); text != "" {
		if err := json.Unmarshal([]byte(text), &op); err != nil {
			return op, fmt.Errorf("context_op_json of step %d: %w", reply.StepIndex, err)
		}
	}
	return op, nil
}

// Steps reads as much of the steps from rows as a prompt shows.
func Steps(rows []schemas.StepRow) ([]schemas.Step, error) {
	var out []schemas.Step
	var reply *schemas.Reply // of this turn
	for i := range rows {
		r := &rows[i]
		s := schemas.Step{Index: int(r.StepIndex), Turn: -1, Call: -1, Source: r.Source, Phase: value(r.Phase)}
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
				return nil, fmt.Errorf("step %d is a call of no reply", r.StepIndex)
			}
			s.ToolCall = &schemas.ToolCall{ID: value(r.ToolCallID), Name: *r.ToolName, Arguments: json.RawMessage(value(r.ArgumentsJSON))}
			reply.Calls = append(reply.Calls, *s.ToolCall)
		}
		if r.Observation != nil {
			s.Observation = &schemas.Observation{Text: *r.Observation}
		}
		if more := value(r.TriggeredJSON); more != "" {
			if err := json.Unmarshal([]byte(more), &s.Triggered); err != nil {
				return nil, fmt.Errorf("triggered_json of step %d: %w", r.StepIndex, err)
			}
		}
		out = append(out, s)
	}
	return out, nil
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
