package policies

import (
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// message is the text of a turn with what it asserts.
type message struct {
	text   string
	claims []schemas.Claim
}

// plain returns a message that asserts nothing about the program.
func plain(text string) message { return message{text, []schemas.Claim{}} }

// then returns the message with the sentences of another after its own.
func (m message) then(next message) message {
	return message{strings.TrimSpace(m.text + " " + next.text), append(m.claims, next.claims...)}
}

// reply returns the turn with the message.
func (m message) reply() schemas.Reply { return schemas.Reply{Message: m.text, Claims: m.claims} }

// The functions below return one sentence each. A sentence takes all that it asserts from its claims, so that
// text and claims cannot disagree.

func sentence(text string, claims ...schemas.Claim) message { return message{text, claims} }

func failingTest(fails schemas.Claim) message {
	return sentence(fmt.Sprintf("The failing test is `%s`.", fails.Test), fails)
}

func reported(reports schemas.Claim) message {
	return sentence(fmt.Sprintf("It reports `%s`.", reports.Message), reports)
}

func noOption(reports schemas.Claim) message {
	return sentence("This version of unittest has no option -k, so I name the test by its module instead.", reports)
}

// called says who calls a function and where that is defined. by is the name of the caller.
func called(by string, calls, defines schemas.Claim, ambiguous bool) message {
	if ambiguous {
		return sentence(fmt.Sprintf("%s calls `%s`, and %s defines a function of this name at line %d.", by, calls.Function, defines.File, defines.Line), calls, defines)
	}
	return sentence(fmt.Sprintf("%s calls `%s`, which is defined in %s at line %d.", by, calls.Function, defines.File, defines.Line), calls, defines)
}

// member says which class has a method.
func member(class string, defines schemas.Claim) message {
	return sentence(fmt.Sprintf("The class `%s` defines `%s` in %s at line %d.", class, defines.Function, defines.File, defines.Line), defines)
}

func reading(defines schemas.Claim) message {
	return sentence(fmt.Sprintf("I read `%s` in %s at line %d.", defines.Function, defines.File, defines.Line), defines)
}

func alsoReading(defines schemas.Claim) message {
	return sentence(fmt.Sprintf("I also read `%s` in %s at line %d.", defines.Function, defines.File, defines.Line), defines)
}

func breakpointSet(at schemas.Claim) message {
	return sentence(fmt.Sprintf("The breakpoint at %s:%d is set.", at.File, at.Line), at)
}

func stoppedIn(stops schemas.Claim) message {
	return sentence(fmt.Sprintf("The program stopped in `%s`.", stops.Function), stops)
}

func stoppedElsewhere(stops schemas.Claim, want int) message {
	return sentence(fmt.Sprintf("The program stopped at line %d instead of line %d.", stops.Line, want), stops)
}

func madeByTest(reaches schemas.Claim) message {
	return sentence(fmt.Sprintf("The failing test made this call to `%s`.", reaches.Function), reaches)
}

func lineIs(source schemas.Claim) message {
	return sentence(fmt.Sprintf("Line %d is `%s`.", source.Line, source.Text), source)
}

func failsThrough(fails, reaches schemas.Claim) message {
	return sentence(fmt.Sprintf("`%s` fails, and it reaches `%s`.", fails.Test, reaches.Function), fails, reaches)
}

func neverReached(notReached ...schemas.Claim) message {
	return sentence("The program did not stop in a call that the failing test makes to a function I have read.", notReached...)
}

func neverStopped(notReached ...schemas.Claim) message {
	return sentence("The program did not stop where I wanted to look at it.", notReached...)
}

func someFail(fails schemas.Claim) message { return sentence("Some tests still fail.", fails) }

func allPass(fails schemas.Claim) message { return sentence("All tests pass now.", fails) }

func passes(passes schemas.Claim) message {
	return sentence(fmt.Sprintf("`%s` passes now.", passes.Test), passes)
}

// defines returns the claim that a definition is where it is.
func (d definition) defines() schemas.Claim {
	return schemas.Claim{Kind: schemas.ClaimDefines, Function: d.name, File: d.path, Line: d.line}
}

// fails returns the claim that the test fails.
func (f failure) fails() schemas.Claim { return schemas.Claim{Kind: schemas.ClaimFails, Test: f.id} }

// passes returns the claim that the test passes.
func (f failure) passes() schemas.Claim { return schemas.Claim{Kind: schemas.ClaimPasses, Test: f.id} }

// reaches returns the claim that the test has reached a function.
func (f failure) reaches(function string) schemas.Claim {
	return schemas.Claim{Kind: schemas.ClaimReaches, Caller: f.id, Function: function}
}
