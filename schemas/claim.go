package schemas

// Kinds of claims. Each comment says what the claim asserts, and which observations make it true. The
// observations are those before the step whose text makes the claim, and "shown" means shown by one of them. A
// claim is false if an observation shows the opposite. Otherwise it is unchecked.
const (
	// ClaimFails: Test fails; without Test, Count tests fail, or at least one if Count is nil. The last run of the
	// tests shows it. With a Test, File and Line may say where it fails.
	ClaimFails = "fails"
	// ClaimPasses: Test passes; without Test, Count tests pass.
	ClaimPasses = "passes"
	// ClaimReports: the last run of Test reports Message; without Test, some observation has this text.
	ClaimReports = "reports"
	// ClaimSource: line Line of File contains Text. The line was shown.
	ClaimSource = "source"
	// ClaimDefines: File defines Function at Line. The line was shown.
	ClaimDefines = "defines"
	// ClaimCalls: Caller calls Function directly. The source of Caller with a call of this name was shown, or a
	// stack with two adjacent frames. Caller may be a test id.
	ClaimCalls = "calls"
	// ClaimReaches: the program has stopped in Function while Caller was among its callers. A stack shows it.
	ClaimReaches = "reaches"
	// ClaimNotReached: the program has never stopped in Function, or not with Caller, if it is set, on the stack.
	ClaimNotReached = "not_reached"
	// ClaimStops: the program is stopped in Function, at Line of File; Hit counts the stops at this place. Empty
	// fields assert nothing.
	ClaimStops = "stops"
	// ClaimBreakpoint: there is a breakpoint at Line of File.
	ClaimBreakpoint = "breakpoint"
	// ClaimValue: Expression has Value at the current stop. The debugger printed it there.
	ClaimValue = "value"
	// ClaimExecuted and ClaimNotExecuted: the debugged program has run Line of File or not.
	ClaimExecuted    = "executed"
	ClaimNotExecuted = "not_executed"
	// ClaimReturns: Function has returned Value. The debugger showed it.
	ClaimReturns = "returns"
	// ClaimEqual and ClaimDiffers compare Expression and Other, each an expression or a value.
	ClaimEqual   = "equal"
	ClaimDiffers = "differs"
	// ClaimContradicts: Expression has Value, although the text Other, which was shown, says something else.
	ClaimContradicts = "contradicts"
	// ClaimCause: Function, or Line of File, causes the failure, for a Reason. Observations alone do not decide it, but
	// they can contradict the line or the reason, such as "a + b is 3".
	ClaimCause = "cause"
	// ClaimExplains and ClaimDoesNotExplain: Expression explains the failure of Test, or does not. Observations
	// alone do not decide it.
	ClaimExplains       = "explains"
	ClaimDoesNotExplain = "does_not_explain"
)

// Verdicts on claims.
const (
	ClaimTrue      = "true"
	ClaimFalse     = "false"
	ClaimUnchecked = "unchecked"
)

// Claim is an assertion of a text, as data. Kind decides which of the other fields it uses.
type Claim struct {
	Kind       string `json:"kind"`
	Test       string `json:"test,omitempty"`    // id as the test runner prints it, or the name of the function
	Message    string `json:"message,omitempty"` // as the test runner prints it
	File       string `json:"file,omitempty"`
	Line       int    `json:"line,omitempty"`
	Text       string `json:"text,omitempty"` // of a line of source
	Function   string `json:"function,omitempty"`
	Caller     string `json:"caller,omitempty"` // a function or test
	Hit        int    `json:"hit,omitempty"`    // from 1
	Expression string `json:"expression,omitempty"`
	Value      string `json:"value,omitempty"` // as Python prints it
	Other      string `json:"other,omitempty"`
	Count      *int   `json:"count,omitempty"` // of tests
	Reason     string `json:"reason,omitempty"`
}

// CheckedClaim is an entry of claims_json: a claim with the auditor's verdict.
type CheckedClaim struct {
	Claim
	Verdict   string `json:"verdict"`
	Why       string `json:"why,omitempty"`       // what the verdict rests on, in a few words
	Extracted bool   `json:"extracted,omitempty"` // from the text, because the policy stored no claims
}
