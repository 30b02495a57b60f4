package metrics

import (
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// call counts a tool call.
func (s *seeker) call(row *schemas.StepRow, read *Reading) {
	if row.ToolName == nil {
		return
	}
	p := &s.process
	p.calls++
	p.unknownErrors = p.unknownErrors || row.IsError == nil
	switch schemas.Value(row.ErrorClass) {
	case schemas.ErrUnknownTool, schemas.ErrBadArguments, schemas.ErrCutOff, schemas.ErrUserError:
		p.invalid++
	}
	command := *row.ToolName
	if row.PDBCommand != nil {
		command += " " + *row.PDBCommand
	} else if toolKind(command) == shellTool {
		word, _, _ := strings.Cut(strings.TrimSpace(read.Call.Command), " ")
		command += " " + word
	}
	call := *row.ToolName + "\x00" + schemas.Value(row.ArgumentsJSON)
	if p.equalCommands++; command != p.lastCommand {
		p.equalCommands = 1
	}
	if p.equalCalls++; call != p.lastCall {
		p.equalCalls = 1
	}
	p.lastCommand, p.lastCall = command, call
	p.maxEqualCommands, p.maxEqualCalls = max(p.maxEqualCommands, p.equalCommands), max(p.maxEqualCalls, p.equalCalls)
}

func (p *process) result(out *Seeking) {
	if !p.unknownErrors {
		out.InvalidCalls = Ratio(p.invalid, p.calls)
	}
	if p.calls > 0 {
		out.LongestCommandRun, out.LongestCallRun = new(int32(p.maxEqualCommands)), new(int32(p.maxEqualCalls))
	}
}
