package write

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// undo is what takes the last edit back: the line that it has changed, and its text before and after.
type undo struct {
	at            Place
	before, after string
}

// edit takes notes of an edit. before has the lines of the edited file that were shown until then.
func (n *Notes) edit(s schemas.Step, before map[int]string) {
	n.Verified, n.paused = false, false
	var args struct {
		Path       string `json:"path"`
		Start, End int
		Code       string `json:"new_code"`
	}
	if json.Unmarshal(s.ToolCall.Arguments, &args) != nil || args.Start != args.End {
		n.Edits++
		n.undo = nil
		return
	}
	at := Place{args.Path, args.Start}
	n.source.add(at.File, at.Line, args.Code)
	if n.undo != nil && n.undo.at == at && n.undo.before == args.Code {
		n.Edits--
		n.undo, n.Undone = nil, true
		return
	}
	n.Edits++
	n.undo = &undo{at, before[at.Line], args.Code}
}

// undoOptions returns the option to take the last edit back if the tests do not pass with it.
func (n *Notes) undoOptions() []Option {
	if n.Passed || n.undo == nil {
		return nil
	}
	m := say(fmt.Sprintf(n.words("`%s` passes now, but not all tests do.", "That helps `%s`, but other tests fail."), n.Test.ID),
		schemas.Claim{Kind: schemas.ClaimPasses, Test: n.Test.ID}, schemas.Claim{Kind: schemas.ClaimFails})
	for _, f := range n.Failures {
		if f.ID == n.Test.ID {
			m = say(fmt.Sprintf(n.words("`%s` still fails, so that was not the right change.", "That does not help: `%s` still fails."), f.ID), schemas.Claim{Kind: schemas.ClaimFails, Test: f.ID})
		}
	}
	now := n.countFailed()
	if now > len(n.Failures) { // the answer names only the first ones
		m = say(n.words("Not all tests pass with this change.", "With this change, tests still fail."), schemas.Claim{Kind: schemas.ClaimFails})
	}
	if o := n.last.Observation; o != nil && (o.TimedOut || o.IsError) { // the list of failing tests is not whole
		m = say(n.words("With this change, the tests do not run to their end.", "The tests do not end with this change."))
	}
	if now > n.failed {
		m = m.then(say(fmt.Sprintf("Now %d tests fail instead of %d.", now, n.failed), schemas.Claim{Kind: schemas.ClaimFails, Count: &now}))
	}
	return []Option{{Kind: Undo, Place: n.undo.at, Statement: strings.TrimSpace(n.undo.after), say: m.then(say(n.words("I take it back.", "I undo the edit."))),
		call: schemas.NewToolCall("edit", map[string]any{"path": n.undo.at.File, "start": n.undo.at.Line, "end": n.undo.at.Line, "new_code": n.undo.before})}}
}
