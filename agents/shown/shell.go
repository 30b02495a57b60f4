package shown

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// This file reads lines of files from the output of bash. The output counts only if the command
// does nothing but print one file. It also does not count if an earlier command may have changed
// the shell's directory or the meaning of commands, or started something that prints to the
// terminal.

// printCommands lists the commands that only print one file. Group 1 of command is the file.
// numberedLine matches an output line that begins with its number; it is nil for commands that do
// not print numbers.
var printCommands = []struct {
	command, numberedLine *regexp.Regexp
}{
	{regexp.MustCompile(`^(?:cat -n|nl -b ?a) ` + plainPath + `$`), regexp.MustCompile(`^ *(\d+)\t(.*)$`)},
	{regexp.MustCompile(`^grep -n (?:-[EFi] )*(?:'[^']*'|"[^"$` + "`" + `\\]*"|\w+) ` + plainPath + `$`), regexp.MustCompile(`^(\d+):(.*)$`)},
	{regexp.MustCompile(`^cat ` + plainPath + `$`), nil},
	{regexp.MustCompile(`^head (?:-n ?|-)\d+ ` + plainPath + `$`), nil},
	{regexp.MustCompile(`^sed -n (?:'\d+(?:,\d+)?p'|"\d+(?:,\d+)?p"|\d+(?:,\d+)?p) ` + plainPath + `$`), nil},
}

const plainPath = `([A-Za-z0-9_/.][A-Za-z0-9_/.-]*)`

var (
	firstLine = regexp.MustCompile(`^sed -n ['"]?(\d+)`)
	// shellChange matches commands that may change the shell.
	shellChange = regexp.MustCompile(`\b(?:cd|pushd|popd|alias|function|exec|set|shopt|trap|eval|source|export|PATH)\b|\(\)|(?:^|[^&>])&(?:[^&>]|$)|(?:^|[\s;])\. `)
)

// ShellLines returns the lines of a file that a call of bash printed, by number. before holds the
// earlier steps. It returns nil if the output may contain anything else.
func ShellLines(s schemas.Step, before []schemas.Step) (lines []Line) {
	o := s.Observation
	if o.IsError || o.TimedOut || o.ExitCode == nil || *o.ExitCode != 0 {
		return nil
	}
	for _, b := range before {
		if b.ToolCall != nil && b.ToolCall.Name == "bash" && (shellChange.MatchString(Command(b.ToolCall.Arguments)) || b.Observation == nil || b.Observation.TimedOut) {
			return nil
		}
	}
	command := strings.TrimSpace(Command(s.ToolCall.Arguments))
	for _, p := range printCommands {
		m := p.command.FindStringSubmatch(command)
		if m == nil || p.numberedLine == nil && o.Truncated {
			continue
		}
		n := 1
		if first := firstLine.FindStringSubmatch(command); first != nil {
			n, _ = strconv.Atoi(first[1]) // the pattern ensures digits; an overflow matches no line
		}
		for i, text := range strings.Split(strings.TrimSuffix(o.Text, "\n"), "\n") {
			number := n + i
			if strings.ContainsRune(text, HiddenRune) {
				continue
			}
			if p.numberedLine != nil {
				line := p.numberedLine.FindStringSubmatch(text)
				if line == nil {
					continue
				}
				number, _ = strconv.Atoi(line[1])
				text = line[2]
			}
			lines = append(lines, Line{m[1], number, text})
		}
		return lines
	}
	return nil
}

// Command returns the argument command of a call of bash or pdb, or "".
func Command(arguments json.RawMessage) string {
	var args struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(arguments, &args) != nil {
		return ""
	}
	return args.Command
}
