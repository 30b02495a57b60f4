package calltext

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/configs/nearest"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools/jsonschema"
)

// Mistake is an error in a command line.
type Mistake struct {
	At      int // byte offset in the line
	Message string
}

func (m *Mistake) Error() string { return m.Message }

func mistake(at int, format string, a ...any) *Mistake {
	return &Mistake{at, fmt.Sprintf(format, a...)}
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// ParseCommand parses a command line that a person typed: the name of a tool, then key=value for
// each argument. A value with spaces must be in single or double quotes. In quotes, \n is a line
// break, \t a tab, and \\, \" and \' stand for the second character; any other backslash stands
// for itself. Lists and objects are JSON. The tool's schema decides the types of values. Errors are
// of type *Mistake.
func ParseCommand(line string, tools []schemas.ToolSchema) (schemas.ToolCall, error) {
	p := commandReader{line: line}
	p.skipSpace()
	start := p.at
	name := p.until(unicode.IsSpace)
	switch known := slices.IndexFunc(tools, func(t schemas.ToolSchema) bool { return t.Name == name }); {
	case name == "":
		return schemas.ToolCall{}, mistake(start, "the line is empty: enter a tool and its arguments, such as %s", Usage(tools[:min(1, len(tools))]))
	case !identifier.MatchString(name):
		return schemas.ToolCall{}, mistake(start, "%q is not a tool name", name)
	case known < 0:
		names := toolNames(tools)
		if near := nearest.Name(name, names, max(len(name)/2, 1)); near != "" {
			return schemas.ToolCall{}, mistake(start, "unknown tool %q: did you mean %s?", name, near)
		}
		return schemas.ToolCall{}, mistake(start, "unknown tool %q: choose one of %s", name, strings.Join(names, ", "))
	}
	args, err := p.arguments(findTool(tools, name))
	if err != nil {
		return schemas.ToolCall{}, err
	}
	raw, jsonErr := schemas.CanonicalJSON(args)
	if jsonErr != nil {
		return schemas.ToolCall{}, mistake(0, "JSON cannot represent the arguments: %v", jsonErr)
	}
	return schemas.ToolCall{Name: name, Arguments: raw}, nil
}

// commandReader reads a line from left to right.
type commandReader struct {
	line string
	at   int
}

// until returns the text up to the first character for which stop is true, and moves past it.
func (p *commandReader) until(stop func(rune) bool) string {
	start := p.at
	for p.at < len(p.line) {
		r, size := utf8.DecodeRuneInString(p.line[p.at:])
		if stop(r) {
			break
		}
		p.at += size
	}
	return p.line[start:p.at]
}

func (p *commandReader) skipSpace() { p.until(func(r rune) bool { return !unicode.IsSpace(r) }) }

func (p *commandReader) arguments(tool *jsonschema.Tool) (map[string]any, error) {
	args := map[string]any{}
	for p.skipSpace(); p.at < len(p.line); p.skipSpace() {
		start := p.at
		key := p.until(func(r rune) bool { return unicode.IsSpace(r) || r == '=' })
		switch {
		case p.at == len(p.line) || p.line[p.at] != '=':
			return nil, mistake(start, "%q is not key=value: put a value with spaces in quotes", key)
		case !identifier.MatchString(key):
			return nil, mistake(start, "%q is not an argument name", key)
		}
		known := tool.Argument(key)
		if _, twice := args[key]; twice {
			return nil, mistake(start, "%s is given twice", key)
		}
		if known == nil {
			if near := nearest.Name(key, tool.Names(), max(len(key)/3, 1)); near != "" {
				return nil, mistake(start, "unknown argument %q: did you mean %s?", key, near)
			}
			if len(tool.Names()) == 0 {
				return nil, mistake(start, "unknown argument %q: the tool takes no arguments", key)
			}
			return nil, mistake(start, "unknown argument %q: choose one of %s", key, strings.Join(tool.Names(), ", "))
		}
		p.at++
		p.skipSpace()
		value, err := p.value(known)
		if err != nil {
			return nil, err
		}
		args[key] = value
	}
	for _, key := range tool.Required() {
		if _, given := args[key]; !given {
			return nil, mistake(len(p.line), "%s is missing: add %s=", key, key)
		}
	}
	return args, nil
}

// value reads one value and casts it to a type that the schema allows.
func (p *commandReader) value(want *jsonschema.Argument) (any, error) {
	start, key := p.at, want.Name
	if start == len(p.line) {
		return nil, mistake(start, "the value of %s is missing: write \"\" for an empty value", key)
	}
	var text string
	switch c := p.line[start]; {
	case c == '"' || c == '\'':
		var closed bool
		if text, closed = p.quoted(); !closed {
			return nil, mistake(start, "the quoted value of %s has no closing quote", key)
		}
		if want.IsText() {
			return checkValue(start, text, want)
		}
	case (c == '[' || c == '{') && !want.IsText():
		dec := json.NewDecoder(strings.NewReader(p.line[start:]))
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, mistake(start, "the value of %s is not JSON: %v", key, err)
		}
		text = string(raw)
		p.at += int(dec.InputOffset())
	default:
		text = p.until(unicode.IsSpace)
	}
	return checkValue(start, want.Cast(text), want)
}

// checkValue checks a value against its type and its choices.
func checkValue(at int, value any, want *jsonschema.Argument) (any, error) {
	text, isText := value.(string)
	if isText && len(want.Types) > 0 && !want.IsText() {
		return nil, mistake(at, "%s must be %s, not %q", want.Name, strings.Join(want.Types, " or "), text)
	}
	if n, ok := value.(json.Number); ok && slices.Equal(want.Types, []string{"integer"}) && strings.ContainsAny(n.String(), ".eE") {
		return nil, mistake(at, "%s must be integer, not %s", want.Name, n)
	}
	if len(want.Enum) > 0 && !slices.ContainsFunc(want.Enum, func(choice any) bool { return fmt.Sprint(choice) == fmt.Sprint(value) }) {
		return nil, mistake(at, "%s must be one of %s", want.Name, strings.Join(want.Choices(), ", "))
	}
	return value, nil
}

// quoted reads a quoted text up to and including its closing quote.
func (p *commandReader) quoted() (text string, closed bool) {
	quote := p.line[p.at]
	var out strings.Builder
	for i := p.at + 1; i < len(p.line); i++ {
		switch c := p.line[i]; {
		case c == quote:
			p.at = i + 1
			return out.String(), true
		case c == '\\' && i+1 < len(p.line):
			i++
			switch next := p.line[i]; next {
			case 'n':
				out.WriteByte('\n')
			case 't':
				out.WriteByte('\t')
			case '\\', '"', '\'':
				out.WriteByte(next)
			default:
				out.WriteByte('\\')
				out.WriteByte(next)
			}
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), false
}

// Complete returns completions of the last word of a line, and the byte offset at which the word
// begins: names of tools, names of arguments that are not given yet, and choices of a value.
func Complete(line string, tools []schemas.ToolSchema) (from int, options []string) {
	from = strings.LastIndexFunc(line, unicode.IsSpace) + 1
	last := line[from:]
	fields := strings.Fields(line)
	var all []string
	switch key, _, hasValue := strings.Cut(last, "="); {
	case len(fields) == 0 || len(fields) == 1 && last != "":
		for _, name := range toolNames(tools) {
			all = append(all, name+" ")
		}
	case hasValue:
		from += len(key) + 1
		last = last[len(key)+1:]
		if known := findTool(tools, fields[0]).Argument(key); known != nil {
			for _, choice := range known.Choices() {
				all = append(all, choice+" ")
			}
		}
	default:
		for _, name := range findTool(tools, fields[0]).Names() {
			if !slices.ContainsFunc(fields[1:], func(f string) bool { return strings.HasPrefix(f, name+"=") }) {
				all = append(all, name+"=")
			}
		}
	}
	for _, option := range all {
		if strings.HasPrefix(option, last) {
			options = append(options, option)
		}
	}
	return from, options
}

// Usage shows how to call each tool, one per line. Optional arguments are in brackets.
func Usage(tools []schemas.ToolSchema) string {
	var lines []string
	for _, t := range tools {
		line := t.Name
		for _, a := range findTool(tools, t.Name).Arguments {
			kinds := a.Choices()
			if len(kinds) == 0 {
				kinds = a.Types
			}
			use := a.Name + "=" + strings.Join(kinds, "|")
			if !a.Required {
				use = "[" + use + "]"
			}
			line += " " + use
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func toolNames(tools []schemas.ToolSchema) []string {
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return names
}
