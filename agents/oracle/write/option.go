package write

import (
	"fmt"

	"github.com/tracesmith/tracesmith/schemas"
)

// Kinds of options.
const (
	RunTests    = "run_tests"
	RunAlone    = "run_alone"    // Test
	ReadTest    = "read_test"    // Test
	ReadStart   = "read_start"   // the lines before the shown ones of the test
	List        = "list"         // the files of the repository
	Find        = "find"         // Function.Name: search for its definition
	FindSetting = "find_setting" // Function.Name: search for the line that sets it
	ReadBody    = "read"         // Function
	Outline     = "outline"      // list the definitions of Place.File, or of all files
	Break       = "break"        // Place, a line of Function
	Narrow      = "narrow"       // stop at Place only if Expression, a parameter, has the value of the literal Instead
	Skip        = "skip"         // the next Count hits of the breakpoint at which the program is paused
	Continue    = "continue"     // to the next breakpoint
	Wait        = "wait"         // longer, for a program that has not reached its breakpoint in time
	Where       = "where"        // show the stack
	Compare     = "compare"      // with a test that does not fail, at Place
	Next        = "next"         // run the current line
	Step        = "step"         // into the function that the current line calls
	Return      = "return"       // run to the end of the function
	Until       = "until"        // Place, below in the same function
	Arguments   = "arguments"
	Print       = "print"    // Expression
	Try         = "try"      // Expression in place of Instead; Statement is what the line would be
	Repeat      = "repeat"   // Expression of the statement at Place, which has run, once more
	Edit        = "edit"     // Statement at Place
	HandOver    = "handover" // Place as the cause, to another agent
	Undo        = "undo"     // take an edit back, which has made Place the Statement
	Exchange    = "exchange" // edit: the lines Place and Last change places
	Explain     = "explain"  // name Place as the cause and read it again, before a change that is not derived
	Conclude    = "conclude" // end without an edit, because Place causes the failure
	Submit      = "submit"
	GiveUp      = "give_up"
)

// Option is an action that what was shown licenses: all names, places and expressions in it were shown, or follow
// from what was shown by a fixed rule.
type Option struct {
	Kind        string
	Test        string
	Function    Function
	Place       Place
	Last        int // Break: of the statement at Place; ReadBody: of the lines that are shown
	Temporary   bool
	IsEntry     bool // Break: the function begins with the statement at Place
	Unexplained bool // nothing that was shown is a reason for it
	Expression  string
	Instead     string
	Count       int
	Other       bool // Narrow: values other than Instead
	Statement   string
	Raises      bool     // Edit, Explain, Conclude, HandOver: the statement at Place raises an error
	Tried       bool     // Edit, HandOver: an experiment supports the Statement
	IsTypical   bool     // Try: the change repairs a typical mistake, such as a wrong operator or bound
	Calls       []string // Break: what the statement at Place calls

	contrast *contrast
	say      message
	call     schemas.ToolCall
	stop     string // ends the episode
}

// Reply returns the turn that takes the option.
func (o Option) Reply(calls int) schemas.Reply {
	r := schemas.Reply{Message: o.say.text, Claims: o.say.claims, FinishReason: "tool_calls", Stop: o.stop}
	if o.call.Name != "" {
		o.call.ID = fmt.Sprintf("call_%d", calls+1)
		r.Calls = []schemas.ToolCall{o.call}
	}
	return r
}

func pdb(command string) schemas.ToolCall {
	return schemas.NewToolCall("pdb", map[string]any{"command": command})
}
