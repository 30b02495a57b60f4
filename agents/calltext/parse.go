// Package calltext is a way to call tools by plain text, for models and servers
// without calls of their own: it describes tools to a model, reads calls out of
// what it wrote, and writes them.
//
//	<function=NAME>
//	<parameter=KEY>value</parameter>
//	</function>
//
// One line break after a parameter's opening tag and one before its closing tag
// belong to the tags; every other character is the value's. A value that begins
// on a line of its own ends at a closing tag that does so as well,
// and may hold anything else.
package calltext

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools/jsonschema"
)

var (
	opening   = regexp.MustCompile(`<function\s*=`)
	parameter = regexp.MustCompile(`^<parameter\s*=\s*([^<>\n]*)>`)
	ownLine   = regexp.MustCompile(`\n[ \t]*</parameter>`)
	lastBreak = regexp.MustCompile(`\r?\n[ \t]*$`)
	// strayed are calls in other grammars, by name.
	strayed = regexp.MustCompile(`<(?:function|invoke)\s+name\s*=\s*["']?([\w.-]+)|<tool_call>\s*\{\s*"name"\s*:\s*"([\w.-]+)"`)
)

const (
	endFunction  = "</function>"
	endParameter = "</parameter>"
	maxProblem   = 60 // characters of the model's text that a problem quotes
	maxCalls     = 32 // what follows belongs to the last one
)

// Parse takes a model's text apart: what it said before its first call, and the
// calls in order. The message and the Raw texts of all calls, put together, are
// text again. Arguments are cast to what the tool's schema asks for where that
// has one meaning. A call that cannot be read says why in Invalid. cut: the text
// ended at the model's output limit.
func Parse(text string, tools []schemas.ToolSchema, cut bool) (message string, calls []schemas.ToolCall) {
	first := opening.FindStringIndex(text)
	if first == nil {
		return stray(text)
	}
	message = text[:first[0]]
	c := cursor{text: text, cut: cut}
	for at := first[0]; at < len(text); {
		c.at = at
		call := c.call(tools)
		next := len(text)
		if loc := opening.FindStringIndex(text[c.at:]); loc != nil && len(calls) < maxCalls-1 {
			next = c.at + loc[0]
		}
		call.Raw = text[at:next]
		calls = append(calls, call)
		at = next
	}
	return message, calls
}

// stray recognises a call in a grammar of another kind, to say so.
func stray(text string) (string, []schemas.ToolCall) {
	loc := strayed.FindStringSubmatchIndex(text)
	if loc == nil {
		return text, nil
	}
	name := ""
	for i := 2; i < len(loc); i += 2 {
		if loc[i] >= 0 {
			name = text[loc[i]:loc[i+1]]
		}
	}
	return text[:loc[0]], []schemas.ToolCall{{Name: name, Arguments: json.RawMessage("{}"), Raw: text[loc[0]:],
		Invalid: "a call begins with <function=" + name + "> and gives each argument as <parameter=...>"}}
}

// cursor reads calls one after the other.
type cursor struct {
	text string
	at   int
	cut  bool
	// No closing tag on a line of its own is ahead: looked for once.
	noOwnLine bool
}

func (c *cursor) rest() string { return c.text[c.at:] }

func (c *cursor) skipBlanks() { c.at = len(c.text) - len(strings.TrimLeft(c.rest(), " \t\r\n")) }

// call reads from <function= on, to behind the call or to where it breaks.
func (c *cursor) call(tools []schemas.ToolSchema) schemas.ToolCall {
	out := schemas.ToolCall{Arguments: json.RawMessage("{}")}
	c.at += opening.FindStringIndex(c.rest())[1]
	line, _, _ := strings.Cut(c.rest(), "\n")
	name, _, closed := strings.Cut(line, ">")
	out.Name = strings.Trim(name, " \t\r\"'")
	if !closed {
		c.at += len(line)
		out.Invalid = "the tag <function=...> is not closed with >"
		return out
	}
	c.at += len(name) + 1
	tool := find(tools, out.Name)
	if args, ok := c.object(); ok {
		out.Arguments = args
		return out
	}
	args := map[string]any{}
	for {
		done, err := c.argument(tool, args)
		switch {
		case err != nil:
			out.Invalid, out.Truncated = err.Error(), errors.Is(err, errCut)
			return out
		case done:
			encoded, err := schemas.CanonicalJSON(args)
			if err != nil {
				out.Invalid = err.Error()
				return out
			}
			out.Arguments = encoded
			return out
		}
	}
}

// object accepts one JSON object in the place of parameters.
func (c *cursor) object() (json.RawMessage, bool) {
	if !strings.HasPrefix(strings.TrimLeft(c.rest(), " \t\r\n"), "{") {
		return nil, false
	}
	body, _, closed := strings.Cut(c.rest(), endFunction)
	trimmed := strings.TrimSpace(body)
	var args map[string]any
	if json.Unmarshal([]byte(trimmed), &args) != nil {
		return nil, false
	}
	encoded, err := schemas.CanonicalJSON(json.RawMessage(trimmed))
	if err != nil {
		return nil, false
	}
	c.at += len(body)
	if closed {
		c.at += len(endFunction)
	}
	return encoded, true
}

// argument reads the next parameter; done is the end of the call. Servers that
// stop at </function> leave it out, and so do models: the end of the text and
// the next call end one as well.
func (c *cursor) argument(tool *jsonschema.Tool, args map[string]any) (done bool, err error) {
	c.skipBlanks()
	rest := c.rest()
	switch {
	case strings.HasPrefix(rest, endFunction):
		c.at += len(endFunction)
		return true, nil
	case rest == "" && c.cut:
		return false, errCut
	case rest == "", strings.HasPrefix(rest, "<function"):
		return true, nil
	}
	tag := parameter.FindStringSubmatch(rest)
	if tag == nil {
		return false, fmt.Errorf("where <parameter=...> or </function> should stand it reads %q", head(rest))
	}
	key := strings.Trim(tag[1], " \t\r\"'")
	c.at += len(tag[0])
	value, err := c.value(key)
	if err != nil {
		return false, err
	}
	if _, twice := args[key]; twice {
		return false, fmt.Errorf("parameter %q is given twice", key)
	}
	args[key] = tool.Argument(key).Cast(value)
	return false, nil
}

var errCut = errors.New("your reply was cut off at the limit of its length, before the call was complete: say less before the call, or split the work into smaller calls")

// value reads to behind the closing tag.
func (c *cursor) value(key string) (string, error) {
	rest := c.rest()
	end := strings.Index(rest, endParameter)
	if !c.noOwnLine && (strings.HasPrefix(rest, "\n") || strings.HasPrefix(rest, "\r\n")) {
		if loc := ownLine.FindStringIndex(rest); loc != nil {
			end = loc[1] - len(endParameter)
		} else {
			c.noOwnLine = true
		}
	}
	if end < 0 {
		if c.cut {
			return "", errCut
		}
		return "", fmt.Errorf("parameter %q is not closed with </parameter>", key)
	}
	c.at += end + len(endParameter)
	value := rest[:end]
	if loc := lastBreak.FindStringIndex(value); loc != nil {
		value = value[:loc[0]]
	}
	if after, ok := strings.CutPrefix(value, "\r\n"); ok {
		return after, nil
	}
	return strings.TrimPrefix(value, "\n"), nil
}

func head(s string) string {
	if r := []rune(s[:min(len(s), 4*maxProblem)]); len(r) > maxProblem {
		return string(r[:maxProblem]) + "…"
	}
	return s
}
