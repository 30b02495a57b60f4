// Package calltext represents tool calls as plain text, for models and servers without native
// tool calls. It describes tools to a model and parses the calls in the model's replies. It also
// parses and completes the command lines of a person who calls tools.
//
// A model writes a call like this:
//
//	<function=NAME>
//	<parameter=KEY>value</parameter>
//	</function>
//
// One line break after a parameter's opening tag and one before its closing tag belong to the
// tags. Every other character belongs to the value. A value that begins on its own line ends at
// the first closing tag that also begins a line, so it may contain closing tags elsewhere.
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
	functionTag   = regexp.MustCompile(`<function\s*=`)
	parameterTag  = regexp.MustCompile(`^<parameter\s*=\s*([^<>\n]*)>`)
	endOnOwnLine  = regexp.MustCompile(`\n[ \t]*</parameter>`)
	lastLineBreak = regexp.MustCompile(`\r?\n[ \t]*$`)
	// foreignCall matches a call in another syntax and captures the name of the tool.
	foreignCall = regexp.MustCompile(`<(?:function|invoke)\s+name\s*=\s*["']?([\w.-]+)|<tool_call>\s*\{\s*"name"\s*:\s*"([\w.-]+)"`)
)

const (
	endFunction  = "</function>"
	endParameter = "</parameter>"
	maxQuoted    = 60 // characters of the model's text that an error message quotes
	maxCalls     = 32 // Raw of the last call holds the rest of the text
)

// Parse splits a model's text into the message before the first call, and the calls in order. The
// message followed by the Raw texts of all calls equals text. Parse casts each parameter to the
// first type in the tool's schema that fits its value, or keeps it a string. If a call cannot be
// parsed, its Invalid says why. cut reports whether text ended at the model's output limit.
func Parse(text string, tools []schemas.ToolSchema, cut bool) (message string, calls []schemas.ToolCall) {
	first := functionTag.FindStringIndex(text)
	if first == nil {
		return parseForeign(text)
	}
	message = text[:first[0]]
	c := cursor{text: text, cut: cut}
	for at := first[0]; at < len(text); {
		c.at = at
		call := c.call(tools)
		next := len(text)
		if loc := functionTag.FindStringIndex(text[c.at:]); loc != nil && len(calls) < maxCalls-1 {
			next = c.at + loc[0]
		}
		call.Raw = text[at:next]
		calls = append(calls, call)
		at = next
	}
	return message, calls
}

// parseForeign recognizes a call in another syntax and returns it as an invalid call, so that the
// error tells the model the right syntax.
func parseForeign(text string) (string, []schemas.ToolCall) {
	loc := foreignCall.FindStringSubmatchIndex(text)
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
		Invalid: "a call must begin with <function=" + name + "> and give each argument as <parameter=...>"}}
}

// cursor reads calls one after another.
type cursor struct {
	text string
	at   int  // byte offset of the next character
	cut  bool // text ended at the model's output limit
	// noEndOnOwnLine means that no closing tag after at begins a line. It saves repeated searches,
	// which would take quadratic time.
	noEndOnOwnLine bool
}

func (c *cursor) rest() string { return c.text[c.at:] }

func (c *cursor) skipBlanks() { c.at = len(c.text) - len(strings.TrimLeft(c.rest(), " \t\r\n")) }

// call reads one call that begins with <function=. It moves the cursor past the call, or to the
// place of the first error in it.
func (c *cursor) call(tools []schemas.ToolSchema) schemas.ToolCall {
	out := schemas.ToolCall{Arguments: json.RawMessage("{}")}
	c.at += functionTag.FindStringIndex(c.rest())[1]
	line, _, _ := strings.Cut(c.rest(), "\n")
	name, _, closed := strings.Cut(line, ">")
	out.Name = strings.Trim(name, " \t\r\"'")
	if !closed {
		c.at += len(line)
		out.Invalid = "the tag <function=...> is not closed with >"
		return out
	}
	c.at += len(name) + 1
	tool := findTool(tools, out.Name)
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

// object reads one JSON object in place of the parameters, if there is one.
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

// argument reads the next parameter into args. done reports that the call has ended instead. The
// end of the text and the beginning of the next call also end a call, because models omit
// </function>, and servers that use it as a stop sequence remove it.
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
	tag := parameterTag.FindStringSubmatch(rest)
	if tag == nil {
		return false, fmt.Errorf("expected <parameter=...> or </function>, but found %q", beginning(rest))
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

var errCut = errors.New("your reply was cut off at its length limit before the call was complete: say less before the call, or split the work into smaller calls")

// value reads a parameter's value and moves the cursor past the closing tag.
func (c *cursor) value(key string) (string, error) {
	rest := c.rest()
	end := strings.Index(rest, endParameter)
	if !c.noEndOnOwnLine && (strings.HasPrefix(rest, "\n") || strings.HasPrefix(rest, "\r\n")) {
		if loc := endOnOwnLine.FindStringIndex(rest); loc != nil {
			end = loc[1] - len(endParameter)
		} else {
			c.noEndOnOwnLine = true
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
	if loc := lastLineBreak.FindStringIndex(value); loc != nil {
		value = value[:loc[0]]
	}
	if after, ok := strings.CutPrefix(value, "\r\n"); ok {
		return after, nil
	}
	return strings.TrimPrefix(value, "\n"), nil
}

// beginning returns the first maxQuoted characters of s.
func beginning(s string) string {
	if r := []rune(s[:min(len(s), 4*maxQuoted)]); len(r) > maxQuoted {
		return string(r[:maxQuoted]) + "…"
	}
	return s
}
