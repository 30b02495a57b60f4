package policies

import (
	"fmt"
	"strings"
)

// The functions in this file return the messages of the demonstrator and the baseline, one to three
// sentences per step. Every name, path, number and value in a message is an argument
// that the caller took from the evidence. The rest of the text is fixed.

func sayReproduce() string {
	return "Before I read any code, I reproduce the failure so that I know exactly which test fails and how."
}

func sayNothingFound() string {
	return "The tests show no failure that I can follow, so I stop here."
}

func sayNoEvidence() string {
	return "The program did not stop in a call that the failing test makes to a function I have read, so I have no values that explain the failure. I stop here."
}

func sayReadTest(f failure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The failing test is `%s`.", f.id)
	if f.message != "" {
		fmt.Fprintf(&b, " It reports `%s`.", f.message)
	}
	b.WriteString(" I read the test to see what it calls and what it expects.")
	return b.String()
}

func sayMap() string {
	return "Next I want a map of the program: which file defines which function. I search for all definitions at once."
}

func sayFollow(c candidate) string {
	if c.caller == "" {
		return fmt.Sprintf("The test calls `%s`, which is defined in %s at line %d. I read it.", c.name, c.path, c.line)
	}
	return fmt.Sprintf("`%s` calls `%s`, which is defined in %s at line %d. I follow it.", c.caller, c.name, c.path, c.line)
}

func sayUnread(d definition) string {
	return fmt.Sprintf("I have not read `%s` in %s (line %d) yet. What I have seen so far does not explain the failure, so I read it too.", d.name, d.path, d.line)
}

func sayRank() string {
	return "Code that failing tests run and passing tests do not run is suspicious. I trace all tests and rank the functions by the Ochiai coefficient."
}

func sayRead(d definition) string {
	return fmt.Sprintf("I read `%s` in %s at line %d.", d.name, d.path, d.line)
}

func sayBreak(d definition, line int) string {
	return fmt.Sprintf("Reading alone does not tell me the values. I set a breakpoint in `%s` at line %d and run the failing test under the debugger.", d.name, line)
}

func sayNoSelect() string {
	return "This version of unittest has no option -k, so I name the test by its module instead."
}

func sayContinue(where string) string {
	return fmt.Sprintf("The breakpoint at %s is set. I continue until the program stops there.", where)
}

func sayStack(d definition) string {
	return fmt.Sprintf("The program stopped in `%s`. I check the stack to see whether the failing test made this call.", d.name)
}

func sayArguments(function string) string {
	return fmt.Sprintf("The failing test made this call to `%s`. I look at its arguments.", function)
}

func sayUntil(line int) string {
	return fmt.Sprintf("I let the program run to line %d of this function and look at the state there.", line)
}

func sayElsewhere(want, line int) string {
	return fmt.Sprintf("The program stopped at line %d instead of line %d.", line, want)
}

func sayPrint(name, source string, line int) string {
	if source == "" {
		return fmt.Sprintf("I check the value of `%s` at this point.", name)
	}
	return fmt.Sprintf("Line %d is `%s`. I check the value of `%s` at this point.", line, source, name)
}

func sayObject() string {
	return "The method works on the state of its object, so I look at the attributes as they are now."
}

func sayLocals() string {
	return "I look at everything in this frame to compare it with what the test expects."
}

func sayGiveUp(stops int) string {
	if stops == 0 {
		return "The program did not stop where I wanted to look at it. I cannot name the cause, so I stop here."
	}
	return "I cannot name the cause from the values that I have seen, so I stop here."
}

func sayEdit(i, n int) string {
	if i == 0 {
		return "I have seen the failure, the code that leads to it, and the values at run time. Now I make the change."
	}
	return fmt.Sprintf("The fix has %d parts; this is the next one.", n)
}

func sayEvaluate() string {
	return "I run the tests again to check that the change works and that nothing else broke."
}

func sayStillFailing() string {
	return "Some tests still fail, but this is the change I can justify. I submit it."
}

func sayDone() string {
	return "All tests pass now. I submit the fix."
}
