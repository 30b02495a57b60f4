package policies

import (
	"fmt"

	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

// The functions in this file return the messages of the demonstrator and the baseline, one to three
// sentences per step. Every name, path, number and value in a message is an argument
// that the caller took from the evidence. The rest of the text is fixed. Sentences that assert something
// about the program come from demonstrator_claims.go.

func sayReproduce() message {
	return plain("Before I read any code, I reproduce the failure so that I know exactly which test fails and how.")
}

func sayNothingFound() message {
	return plain("The tests show no failure that I can follow, so I stop here.")
}

func sayNoEvidence(f failure, read []definition) message {
	var claims []schemas.Claim
	for _, d := range read {
		claims = append(claims, schemas.Claim{Kind: schemas.ClaimNotReached, Caller: f.id, Function: d.name})
	}
	return neverReached(claims...).then(plain("I stop here."))
}

func sayReadTest(f failure) message {
	m := failingTest(f.fails())
	if f.message != "" {
		m = m.then(reported(schemas.Claim{Kind: schemas.ClaimReports, Test: f.id, Message: f.message}))
	}
	return m.then(plain("I read the test to see what it calls and what it expects."))
}

func sayMap() message {
	return plain("Next I want a map of the program: which file defines which function. I search for all definitions at once.")
}

func sayFollow(c candidate) message {
	calls := schemas.Claim{Kind: schemas.ClaimCalls, Caller: c.caller, Function: c.name}
	switch {
	case c.byTest:
		return called("The test", calls, c.defines(), c.ambiguous).then(plain("I read it."))
	case c.isMember:
		return member(c.caller, c.defines()).then(plain("I follow it."))
	}
	return called("`"+c.caller+"`", calls, c.defines(), c.ambiguous).then(plain("I follow it."))
}

func sayUnread(d definition) message { return alsoReading(d.defines()) }

func sayRead(d definition) message { return reading(d.defines()) }

func sayBreak(d definition, line int) message {
	return plain(fmt.Sprintf("Reading alone does not tell me the values. I set a breakpoint in `%s` at line %d and run the failing test under the debugger.", d.name, line))
}

func sayRank() message {
	return plain("Code that failing tests run and passing tests do not run is suspicious. I trace all tests and rank the functions by the Ochiai coefficient.")
}

func sayNoSelect() message {
	return noOption(schemas.Claim{Kind: schemas.ClaimReports, Message: testcmd.NoSelect})
}

func sayContinue(d definition, line int) message {
	return breakpointSet(schemas.Claim{Kind: schemas.ClaimBreakpoint, File: d.path, Line: line}).
		then(plain("I continue until the program stops there."))
}

func sayStack(d definition, line int) message {
	return stoppedIn(schemas.Claim{Kind: schemas.ClaimStops, Function: d.name, File: d.path, Line: line}).
		then(plain("I check the stack to see whether the failing test made this call."))
}

func sayArguments(f failure, function string) message {
	return madeByTest(f.reaches(function)).then(plain("I look at its arguments."))
}

func sayUntil(line int) message {
	return plain(fmt.Sprintf("I let the program run to line %d of this function and look at the state there.", line))
}

func sayElsewhere(want int, at schemas.Frame) message {
	return stoppedElsewhere(schemas.Claim{Kind: schemas.ClaimStops, File: at.File, Line: at.Line, Function: at.Function}, want)
}

func sayPrint(name, source, path string, line int) message {
	check := plain(fmt.Sprintf("I check the value of `%s` at this point.", name))
	if source == "" {
		return check
	}
	return lineIs(schemas.Claim{Kind: schemas.ClaimSource, File: path, Line: line, Text: source}).then(check)
}

func sayObject() message {
	return plain("This is a method, so I look at the attributes of its object as they are now.")
}

func sayLocals() message {
	return plain("I look at everything in this frame to compare it with what the test expects.")
}

func sayGiveUp(tried []definition, stops int) message {
	if stops > 0 {
		return plain("I cannot name the cause from the values that I have seen, so I stop here.")
	}
	var claims []schemas.Claim
	for _, d := range tried {
		claims = append(claims, schemas.Claim{Kind: schemas.ClaimNotReached, File: d.path, Function: d.name})
	}
	return neverStopped(claims...).then(plain("I cannot name the cause, so I stop here."))
}

func sayEdit(f failure, function string, i int) message {
	if i == 0 {
		return failsThrough(f.fails(), f.reaches(function)).then(plain("I have seen the values there. Now I make the change."))
	}
	return plain("I make the next part of the change.")
}

func sayEvaluate() message {
	return plain("I run the tests again to check that the change works and that nothing else broke.")
}

func sayStillFailing() message {
	return someFail(schemas.Claim{Kind: schemas.ClaimFails}).then(plain("I submit the change as it is."))
}

func sayDone(f failure, all bool) message {
	m := passes(f.passes())
	if all {
		m = allPass(schemas.Claim{Kind: schemas.ClaimFails, Count: new(0)})
	}
	return m.then(plain("I submit the fix."))
}
