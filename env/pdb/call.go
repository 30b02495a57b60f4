package pdb

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// call is one call of Command. Its pdb commands run one after the other and add paragraphs to the
// observation.
type call struct {
	d        *debuggee
	timeout  time.Duration
	deadline time.Time

	noListing  bool     // leave out the source around the position
	forget     bool     // delete the breakpoints when their program ends
	text       []string // paragraphs of the observation
	size       int      // bytes of output in text
	justListed bool     // the last output was a source listing
	stop       bool     // do not run the remaining commands
	refused    bool     // a command failed or was rejected
	timedOut   bool
	finished   bool // the program ended during this call
	exitCode   int  // valid if finished
}

// printf adds a paragraph to the observation.
func (c *call) printf(format string, a ...any) { c.text = append(c.text, fmt.Sprintf(format, a...)) }

// refuse ends the call with an error that the model can correct.
func (c *call) refuse(format string, a ...any) {
	c.printf(format, a...)
	c.refused, c.stop = true, true
}

// switchEntrypoint ends the session if entrypoint is not the current one. "" keeps the current one.
func (c *call) switchEntrypoint(ctx context.Context, entrypoint string) error {
	d := c.d
	if entrypoint == "" || entrypoint == d.entrypoint {
		return nil
	}
	if _, err := launchLine(entrypoint); err != nil {
		c.refuse("%s", err)
		return nil
	}
	if d.running() {
		d.restartReason = "The entrypoint has changed, so a new session was started."
	}
	d.entrypoint = entrypoint
	return d.end(ctx)
}

// run executes one command.
func (c *call) run(ctx context.Context, line string) error {
	d := c.d
	line = asStatement(line)
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "b", "break", "tbreak":
		if rest != "" {
			return c.setBreakpoint(ctx, word, rest)
		}
		fallthrough
	case "cl", "clear", "disable", "enable", "condition", "ignore":
		text, err := d.breakpoints.manage(word, rest)
		if err != nil {
			c.refuse("*** %s", err)
		} else {
			c.printf("%s", text)
		}
		return nil
	case "q", "quit", "exit", "EOF":
		return c.quit(ctx)
	case "run", "restart":
		if rest != "" {
			c.refuse("*** %s takes no arguments here. To change the program's arguments, pass another entrypoint.", word)
			return nil
		}
		if d.running() {
			d.restartReason = "The program was restarted."
		}
		if err := d.end(ctx); err != nil {
			return err
		}
		_, err := c.ensureStarted(ctx)
		return err
	}
	return c.send(ctx, line, word)
}

func (c *call) quit(ctx context.Context) error {
	if !c.d.running() {
		c.printf("No debugging session is running. The next pdb command starts the program.")
		return c.d.end(ctx)
	}
	c.printf("The debugging session has ended. %s The next pdb command starts the program again.", c.breakpointsNote())
	c.stop = true
	return c.d.end(ctx)
}

// breakpointsNote returns the sentence about what happens to breakpoints when their program ends.
func (c *call) breakpointsNote() string {
	if c.forget {
		return "Its breakpoints are removed."
	}
	return "Breakpoints are kept (" + strconv.Itoa(len(c.d.breakpoints.points)) + ")."
}

// ensureStarted starts the program unless a program with the current code is running. It returns
// false if the program could not be started; the observation then says why.
func (c *call) ensureStarted(ctx context.Context) (bool, error) {
	d := c.d
	if s := d.session; s != nil && !s.ended && !s.stale {
		return true, nil
	}
	switch s := d.session; {
	case s == nil:
	case s.ended:
		d.restartReason = "The program had ended, so it was started again."
	case s.stale:
		d.restartReason = "Files were edited since the program started, so it was restarted."
	}
	if c.forget && d.started {
		d.breakpoints.clear()
	}
	if err := d.end(ctx); err != nil {
		return false, err
	}
	line, err := launchLine(d.entrypoint)
	if err != nil {
		c.refuse("%s", err)
		return false, nil
	}
	s, r, err := start(ctx, d.cfg, line, c.deadline)
	if err != nil {
		return false, err
	}
	if s.ended {
		c.refuse("%s", startFailure(d.entrypoint, s, r, c.timeout))
		d.entrypoint = d.lastStarted
		c.timedOut = s.killed
		return false, nil
	}
	d.session, d.started, d.lastStarted, d.breakpoints.dirty = s, true, d.entrypoint, true
	if d.restartReason != "" {
		c.printf("%s", d.restartReason)
		d.restartReason = ""
	}
	c.printf("The program is paused before its first line: %s", d.entrypoint)
	if out := r.text(); out != "" {
		c.printf("%s", out)
	}
	c.timedOut = r.timedOut
	c.stop = c.stop || r.timedOut
	return true, nil
}

func startFailure(entrypoint string, s *session, r result, timeout time.Duration) string {
	out := r.text()
	if out != "" {
		out = "\n" + out
	}
	if s.killed {
		return fmt.Sprintf("The debugger could not start %q: no prompt after %s.%s", entrypoint, seconds(timeout), out)
	}
	return fmt.Sprintf("The debugger could not start %q: it ended with exit code %d before the first line.%s",
		entrypoint, s.exitCode, out)
}

// setBreakpoint asks the shim for the file and line of a breakpoint and adds it to the registry.
func (c *call) setBreakpoint(ctx context.Context, word, rest string) error {
	if ok, err := c.ensureStarted(ctx); !ok || err != nil || c.stop {
		return err
	}
	spec, condition := splitCondition(rest)
	if spec == "" {
		c.refuse("*** Where? Use b FILE:LINE, b LINE or b FUNCTION, and b FILE:LINE, CONDITION for a condition.")
		return nil
	}
	if err := c.exchange(ctx, message{Break: &breakRequest{Spec: spec, Condition: condition}}); err != nil || c.stop {
		return err
	}
	place := c.d.session.state.Answer.Break
	if place == nil {
		return nil
	}
	c.printf("%s", c.d.breakpoints.set(schemas.Breakpoint{
		File: place.File, Line: place.Line, Condition: condition, Enabled: true, Temporary: word == "tbreak",
	}))
	return nil
}

// send passes a command to pdb.
func (c *call) send(ctx context.Context, line, word string) error {
	if ok, err := c.ensureStarted(ctx); !ok || err != nil || c.stop {
		return err
	}
	if err := c.exchange(ctx, message{Command: line}); err != nil {
		return err
	}
	switch word {
	case "l", "list", "ll", "longlist", "source":
		c.justListed = true
	default:
		c.justListed = false
	}
	return nil
}

// exchange sends a message to the shim and adds the output to the observation.
func (c *call) exchange(ctx context.Context, m message) error {
	d := c.d
	s := d.session
	if d.breakpoints.dirty {
		m.Breakpoints = d.breakpoints.forShim()
	}
	r, err := s.request(ctx, d.cfg, m, c.deadline)
	if err != nil {
		return err
	}
	d.breakpoints.dirty = false
	d.breakpoints.refresh(s.state.Points, s.state.Expired)
	for _, l := range s.state.Answer.Unplaced {
		d.breakpoints.note("Breakpoint %d cannot be reached any more: %s", l.number, l.reason)
	}
	if out := r.text(); out != "" {
		c.printf("%s", out)
		c.size += len(out)
	}
	c.report(r)
	return nil
}

// report adds to the observation how the program reacted, for example that it has ended.
func (c *call) report(r result) {
	s := c.d.session
	switch {
	case s.ended && s.broken:
		c.printf("The program interfered with the debugger, so the session was ended; breakpoints are kept. The next pdb " +
			"command starts the program again.")
		c.refused, c.stop = true, true
	case s.ended && s.killed:
		c.printf("The command timed out after %s. The program could not be interrupted, so the session was ended. %s "+
			"The next pdb command starts the program again.", seconds(c.timeout), c.breakpointsNote())
		c.timedOut, c.stop = true, true
	case s.ended:
		c.finished, c.exitCode, c.stop = true, s.exitCode, true
		c.timedOut = r.timedOut
		if r.timedOut {
			c.printf("Threads or exit handlers of the program were still running after %s and were killed.", seconds(c.timeout))
		}
		c.text = append(c.text, c.d.breakpoints.explainMissed(s.state.Missed, s.state.Children)...)
		c.printf("The program has ended with exit code %d. %s The next pdb command starts it again "+
			"from the beginning.", s.exitCode, c.breakpointsNote())
	case r.timedOut:
		c.timedOut, c.stop = true, true
		c.printf("The command timed out after %s; the program was interrupted at %s:%d.",
			seconds(c.timeout), s.state.File, s.state.Line)
	case s.state.Refused:
		c.refused, c.stop = true, true
	}
}

// reply returns the observation with the current position.
func (c *call) reply() env.DebuggerReply {
	d := c.d
	c.text = append(c.text, d.breakpoints.notes...)
	d.breakpoints.notes = nil
	out := env.DebuggerReply{Frame: d.frame(), TimedOut: c.timedOut, IsError: c.refused}
	if c.finished {
		out.ExitCode = &c.exitCode
		out.Frame = &schemas.Frame{Event: "finished"}
	}
	if d.running() {
		at := &d.session.state
		c.text = append(c.text, where(at))
		if !c.justListed && !c.noListing {
			c.text = append(c.text, listing(at, d.breakpoints.points))
		}
		if target := target(at); target != "" {
			out.Targets = []string{target}
		}
	}
	out.Text = strings.Join(c.text, "\n")
	return out
}

func seconds(d time.Duration) string {
	return fmt.Sprintf("%g s", d.Seconds())
}
