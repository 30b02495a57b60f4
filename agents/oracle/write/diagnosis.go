package write

import (
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// sayCause names the cause before an edit: the line, its value, and the value with the change.
func (n *Notes) sayCause(f Function, st Placed, c change, outcome, tried Value) message {
	m := n.cause(f, st, c.at, c.original, outcome)
	if m.quotes && isShort(c.expression) && isShort(tried.Text) {
		m.text += fmt.Sprintf(", while `%s` is `%s`", c.expression, tried.Text)
	}
	return say("So "+m.text+".", m.claims...).then(n.effect(f, outcome, tried)).then(say(n.words("I change the line accordingly.", "I make that change.")))
}

// sayConclusion names the cause if no change of its line is known to repair it.
func (n *Notes) sayConclusion(f Function, st Placed, outcome Value) message {
	m := n.cause(f, st, st.Place, oneLine(st.evaluated()), outcome)
	return say("I think that "+m.text+".", m.claims...).then(n.effect(f, outcome, Value{})).then(say("I do not see how to change it, so I stop here."))
}

// clause is a part of a sentence.
type clause struct {
	message
	quotes bool // a value
}

// cause says which line is the cause and, if that is short, what it computes there and which branch it takes.
func (n *Notes) cause(f Function, st Placed, at Place, expression string, outcome Value) clause {
	claim := schemas.Claim{Kind: schemas.ClaimCause, Function: f.Name, File: at.File, Line: at.Line}
	text := fmt.Sprintf("line %d of `%s` is the cause", at.Line, f.Name)
	if expression == "" || outcome.Text == "" || isConstant(expression) {
		return clause{message: say(text, claim)}
	}
	claim.Reason = expression + " is " + outcome.Text
	if !isShort(expression) || !isShort(outcome.Text) {
		return clause{message: say(text, claim)}
	}
	is := "is"
	if outcome.IsError {
		is = "raises"
	}
	text = fmt.Sprintf("%s: `%s` %s `%s` there", text, expression, is, outcome.Text)
	if branch := st.branch(outcome); branch != "" && expression == oneLine(st.evaluated()) {
		text += ", so " + branch
	}
	return clause{say(text, claim), true}
}

// effect says how the value of a line leads to the failure: what the function returns then, or what the test reports.
func (n *Notes) effect(f Function, outcome, tried Value) message {
	if m := n.compares(outcome.Text, tried.Text); m.text != "" {
		return m
	}
	for _, stop := range n.Stops {
		if stop.Function == f.Name && stop.File == f.File && stop.Returns != "" && stop.Returns != "None" && stop.Returns != outcome.Text && isShort(stop.Returns) {
			m := say(fmt.Sprintf("That is why `%s` returns `%s`.", f.Name, stop.Returns), schemas.Claim{Kind: schemas.ClaimReturns, Function: f.Name, Value: stop.Returns})
			return m.then(n.compares(stop.Returns, ""))
		}
	}
	if outcome.IsError && strings.Contains(n.Test.Message, outcome.Text) {
		reports := schemas.Claim{Kind: schemas.ClaimReports, Test: n.Test.ID, Message: n.Test.Message}
		return say("The test reports this error.", reports)
	}
	return message{}
}
