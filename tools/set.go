package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools/jsonschema"
)

// Set is the toolbox of an environment. It validates calls, runs tools, and turns
// errors that a model can react to into observations. It holds no state of an episode, so
// environments may share it.
type Set struct {
	entries []entry // in registration order
	schemas []schemas.ToolSchema
}

type entry struct {
	name    string
	tool    Tool
	args    *jsonschema.Tool
	example string
	more    string
}

var _ env.Toolbox = (*Set)(nil)

// NewSet builds a toolbox. It returns an error if two tools have the same name or a
// schema cannot be read.
func NewSet(list []Tool) (*Set, error) {
	s := &Set{}
	for _, t := range list {
		schema := t.Schema()
		if _, twice := s.find(schema.Name); twice {
			return nil, fmt.Errorf("tool %q is listed twice", schema.Name)
		}
		example, more := "{}", ""
		if d, ok := t.(Hinter); ok {
			example, more = d.Example(), d.TruncationHint()
		}
		args, err := jsonschema.Read(schema)
		if err != nil {
			return nil, fmt.Errorf("tool %q: reading its schema: %w", schema.Name, err)
		}
		s.entries = append(s.entries, entry{schema.Name, t, args, example, more})
		s.schemas = append(s.schemas, schema)
	}
	return s, nil
}

// Schemas lists the tools in registration order.
func (s *Set) Schemas() []schemas.ToolSchema { return s.schemas }

// Category returns the category of a tool, or "other" if the tool is unknown.
func (s *Set) Category(name string) string {
	if e, ok := s.find(name); ok {
		return e.tool.Category()
	}
	return "other"
}

func (s *Set) find(name string) (entry, bool) {
	for _, e := range s.entries {
		if e.name == name {
			return e, true
		}
	}
	return entry{}, false
}

// Call runs one call; see env.Toolbox.
func (s *Set) Call(ctx context.Context, sess *env.Session, call schemas.ToolCall) (schemas.Observation, error) {
	e, known := s.find(call.Name)
	if !known {
		return Fit(failure("env", schemas.ErrUnknownTool, s.unknownTool(call.Name)), ""), nil
	}
	if call.Truncated {
		return Fit(failure(e.name, schemas.ErrCutOff, fmt.Sprintf("The call to %s was not run: %s.", e.name, call.Invalid)), ""), nil
	}
	if call.Invalid != "" {
		return Fit(failure(e.name, schemas.ErrBadArguments, fmt.Sprintf("The call to %s was not run: %s. "+
			"Send one JSON object, with newlines and quotes inside strings escaped as \\n and \\\".\n"+
			"A correct call has arguments like this: %s", e.name, call.Invalid, e.example)), ""), nil
	}
	args, problems := e.args.Check(call.Arguments)
	if len(problems) > 0 {
		return Fit(failure(e.name, schemas.ErrBadArguments, fmt.Sprintf("The call to %s was not run: %s.\n"+
			"A correct call has arguments like this: %s", e.name, strings.Join(problems, "; "), e.example)), ""), nil
	}
	return e.guard("", func() (schemas.Observation, error) { return e.tool.Call(ctx, sess, args) })
}

// Notify passes an event to the listeners in registration order and returns their
// observations that have a text. An error means that the sandbox failed.
func (s *Set) Notify(ctx context.Context, sess *env.Session, ev env.Event) ([]schemas.Observation, error) {
	var out []schemas.Observation
	for _, e := range s.entries {
		l, ok := e.tool.(Listener)
		if !ok {
			continue
		}
		o, err := e.guard(" while handling the event "+ev.Kind, func() (schemas.Observation, error) { return l.On(ctx, sess, ev) })
		if err != nil {
			return out, fmt.Errorf("telling %s about %s: %w", e.name, ev.Kind, err)
		}
		if o.Text != "" {
			out = append(out, o)
		}
	}
	return out, nil
}

// unknownTool returns the text of the observation about a call of an unknown tool.
func (s *Set) unknownTool(name string) string {
	var names []string
	for _, e := range s.entries {
		names = append(names, e.name)
	}
	if len(names) == 0 {
		return "No tools are available."
	}
	return fmt.Sprintf("There is no tool named %q. Call one of: %s.", name, strings.Join(names, ", "))
}

// guard runs code of a tool. It turns errors that the model can react to into observations, and a
// panic into a tool_exception. Any other error means that the sandbox failed. during is inserted into
// the message about a panic; it is "" or begins with a space.
func (e entry) guard(during string, run func() (schemas.Observation, error)) (o schemas.Observation, err error) {
	defer func() {
		if p := recover(); p != nil {
			o, err = Fit(failure(e.name, schemas.ErrToolException, fmt.Sprintf(
				"The tool %s failed%s because of an internal error (%v, at %s). This is not your mistake; try a different approach.",
				e.name, during, p, panicSite())), ""), nil
		}
	}()
	o, err = run()
	if err == nil {
		o.Source = cmp.Or(o.Source, e.name)
		return Fit(o, e.more), nil
	}
	if user, ok := errors.AsType[*UserError](err); ok {
		class := cmp.Or(user.Class, schemas.ErrUserError)
		return Fit(failure(e.name, class, user.Text), ""), nil
	}
	switch {
	case errors.Is(err, env.ErrNotExist), errors.Is(err, env.ErrRefused):
		return Fit(failure(e.name, schemas.ErrUserError, fmt.Sprintf(
			"%s did nothing: %v. Check the path with listdir.", e.name, err)), ""), nil
	case errors.Is(err, env.ErrNoProgram):
		return failure(e.name, schemas.ErrUserError, fmt.Sprintf(
			"The tool %s cannot work in this sandbox: %v. Use the other tools.", e.name, err)), nil
	case errors.Is(err, env.ErrNoSpace):
		return failure(e.name, schemas.ErrUserError,
			"The sandbox's disk is full, so nothing was written. Delete files you do not need (bash: du -sh * /tmp/*), then try again."), nil
	}
	return schemas.Observation{}, fmt.Errorf("tool %s: %w", e.name, err)
}

// failure returns an observation that tells the model why a call failed.
func failure(source, class, text string) schemas.Observation {
	return schemas.Observation{Source: source, Text: text, IsError: true, ErrorClass: class}
}

// panicSite returns the function and line that panicked, without directories. The
// deferred function that calls it runs on top of the panicking stack.
func panicSite() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s, %s:%d", path.Base(f.Function), path.Base(f.File), f.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}
