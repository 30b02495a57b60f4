package pdb

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// numberedBreakpoint is a breakpoint with its number, which is never used again for another one.
type numberedBreakpoint struct {
	number int
	schemas.Breakpoint
}

// registry holds the breakpoints in order of their numbers. The shim has a copy.
type registry struct {
	root   string // absolute path of the workspace
	points []numberedBreakpoint
	last   int      // the last number used
	dirty  bool     // the copy of the shim is out of date
	notes  []string // sentences about breakpoints for the next observation
}

// shimBreakpoint is the format in which the shim receives a breakpoint.
type shimBreakpoint struct {
	ID        int    `json:"id"`
	File      string `json:"file"`
	Line      int    `json:"line"`
	Condition string `json:"condition,omitempty"`
	Enabled   bool   `json:"enabled"`
	Temporary bool   `json:"temporary,omitempty"`
	Ignore    int    `json:"ignore,omitempty"`
	Hits      int    `json:"hits,omitempty"`
}

func (r *registry) forShim() []shimBreakpoint {
	out := make([]shimBreakpoint, len(r.points))
	for i, p := range r.points {
		out[i] = shimBreakpoint{p.number, p.File, p.Line, p.Condition, p.Enabled, p.Temporary, p.Ignore, p.Hits}
	}
	return out
}

func (r *registry) list() []schemas.Breakpoint {
	out := make([]schemas.Breakpoint, len(r.points))
	for i, p := range r.sorted() {
		out[i] = p.Breakpoint
	}
	return out
}

// sorted returns the breakpoints by file and line.
func (r *registry) sorted() []numberedBreakpoint {
	return slices.SortedFunc(slices.Values(r.points), func(a, b numberedBreakpoint) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line)
	})
}

// set adds a breakpoint, or changes the existing breakpoint of the line. It returns a sentence for
// the observation.
func (r *registry) set(b schemas.Breakpoint) string {
	r.dirty = true
	for i := range r.points {
		p := &r.points[i]
		if p.File == b.File && p.Line == b.Line {
			p.Condition, p.Temporary, p.Enabled, p.Ignore = b.Condition, b.Temporary, true, 0
			return p.message("was already there; it is now")
		}
	}
	r.last++
	r.points = append(r.points, numberedBreakpoint{number: r.last, Breakpoint: b})
	return r.points[len(r.points)-1].message("set")
}

// message returns a sentence about the breakpoint with the given verb phrase.
func (p *numberedBreakpoint) message(verb string) string {
	text := fmt.Sprintf("Breakpoint %d %s at %s:%d", p.number, verb, p.File, p.Line)
	if p.Condition != "" {
		text += ", if " + p.Condition
	}
	if p.Temporary {
		text += " (temporary: removed when first hit)"
	}
	return text
}

// edited moves the breakpoints of the edited file. It removes a breakpoint whose line was replaced,
// and adds a note about it.
func (r *registry) edited(e env.Edit) {
	var kept []numberedBreakpoint
	for _, p := range r.points {
		switch {
		case p.File != e.File || !e.Whole && p.Line < e.First:
		case e.Whole:
			r.note("Breakpoint %d at %s:%d was removed: the whole file was replaced.", p.number, p.File, p.Line)
			continue
		case p.Line < e.First+e.Removed:
			r.note("Breakpoint %d at %s:%d was removed: the edit replaced its line.", p.number, p.File, p.Line)
			continue
		default:
			p.Line += e.Added - e.Removed
		}
		kept = append(kept, p)
	}
	r.points, r.dirty = kept, true
}

func (r *registry) note(format string, a ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, a...))
}

func (r *registry) clear() {
	r.points, r.dirty = nil, true
}

// refresh updates hits and remaining ignore counts from the shim, and removes temporary breakpoints
// that were hit (expired).
func (r *registry) refresh(counts [][3]int, expired []int) {
	r.points = slices.DeleteFunc(r.points, func(p numberedBreakpoint) bool { return slices.Contains(expired, p.number) })
	for i := range r.points {
		for _, c := range counts {
			if c[0] == r.points[i].number {
				r.points[i].Hits, r.points[i].Ignore = c[1], c[2]
			}
		}
	}
}

// explainMissed explains each breakpoint (number and hits) at which a program never stopped.
// children is true if the program had child processes.
func (r *registry) explainMissed(points [][2]int, children bool) []string {
	const maxReasons = 5
	var out []string
	maybeInChild := false
	for _, p := range points {
		reason := r.missReason(p[0], p[1], children)
		if reason == "" {
			continue
		}
		if len(out) == maxReasons {
			out = append(out, fmt.Sprintf("Nor did %d other breakpoints.", len(points)-maxReasons))
			break
		}
		maybeInChild = maybeInChild || children && p[1] <= 0
		out = append(out, reason)
	}
	if maybeInChild {
		out = append(out, "The program started other processes, which the debugger does not follow: to stop in one of them, "+
			"pass its own command as the entrypoint.")
	}
	return out
}

func (r *registry) missReason(number, hits int, children bool) string {
	at := slices.IndexFunc(r.points, func(p numberedBreakpoint) bool { return p.number == number })
	if at < 0 {
		return ""
	}
	p := &r.points[at]
	text := p.message("did not stop the program") + ": "
	switch {
	case hits > 0 && p.Condition != "":
		return text + fmt.Sprintf("its line was reached (hits: %d), but the condition was not true.", hits)
	case hits > 0:
		return text + fmt.Sprintf("its line was reached (hits: %d), but these were ignored.", hits)
	case children:
		return text + "its line did not run in this process."
	}
	return text + "its line did not run, or only before the breakpoint was set."
}

// describe returns the list of breakpoints that the command b without an argument shows.
func (r *registry) describe() string {
	if len(r.points) == 0 {
		return "No breakpoints are set."
	}
	var b strings.Builder
	b.WriteString("Breakpoints:")
	for _, p := range r.sorted() {
		fmt.Fprintf(&b, "\n%d  %s:%d", p.number, p.File, p.Line)
		if p.Condition != "" {
			fmt.Fprintf(&b, ", if %s", p.Condition)
		}
		for _, extra := range []struct {
			on   bool
			text string
		}{
			{!p.Enabled, "disabled"},
			{p.Temporary, "temporary"},
			{p.Ignore > 0, fmt.Sprintf("next %d hits ignored", p.Ignore)},
			{p.Hits > 0, fmt.Sprintf("reached %d times", p.Hits)},
		} {
			if extra.on {
				b.WriteString(", " + extra.text)
			}
		}
	}
	return b.String()
}

// find returns the indexes of the breakpoints that words name by number or FILE:LINE.
func (r *registry) find(words []string) ([]int, error) {
	var found []int
	for _, w := range words {
		at := -1
		if n, err := strconv.Atoi(w); err == nil {
			at = slices.IndexFunc(r.points, func(p numberedBreakpoint) bool { return p.number == n })
		} else if file, line, ok := strings.Cut(w, ":"); ok {
			n, _ := strconv.Atoi(line)
			file = strings.TrimPrefix(strings.TrimPrefix(file, r.root+"/"), "./")
			at = slices.IndexFunc(r.points, func(p numberedBreakpoint) bool {
				return p.Line == n && (p.File == file || strings.HasSuffix(p.File, "/"+file))
			})
		}
		if at < 0 {
			return nil, fmt.Errorf("there is no breakpoint %s. %s", w, r.describe())
		}
		found = append(found, at)
	}
	return found, nil
}

// manage runs a command that does not need the program: clear, disable, enable, condition,
// ignore, and b without an argument.
func (r *registry) manage(word, rest string) (string, error) {
	switch word {
	case "b", "break", "tbreak":
		return r.describe(), nil
	case "condition", "ignore":
		return r.setProperty(word, rest)
	}
	words := strings.FieldsFunc(rest, func(c rune) bool { return c == ' ' || c == ',' || c == '\t' })
	if len(words) == 0 {
		return r.manageAll(word)
	}
	at, err := r.find(words)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, i := range at {
		p := &r.points[i]
		switch word {
		case "disable", "enable":
			p.Enabled = word == "enable"
			lines = append(lines, p.message(word+"d"))
		default:
			lines = append(lines, fmt.Sprintf("Breakpoint %d at %s:%d deleted", p.number, p.File, p.Line))
		}
	}
	if word == "cl" || word == "clear" {
		kept := r.points[:0:0]
		for i, p := range r.points {
			if !slices.Contains(at, i) {
				kept = append(kept, p)
			}
		}
		r.points = kept
	}
	r.dirty = true
	return strings.Join(lines, "\n"), nil
}

func (r *registry) manageAll(word string) (string, error) {
	if word != "cl" && word != "clear" {
		return "", fmt.Errorf("which breakpoint? Use `%s NUMBER`. %s", word, r.describe())
	}
	n := len(r.points)
	r.clear()
	return fmt.Sprintf("All breakpoints are deleted (%d).", n), nil
}

// setProperty runs condition and ignore.
func (r *registry) setProperty(word, rest string) (string, error) {
	number, value, _ := strings.Cut(strings.TrimSpace(rest), " ")
	value = strings.TrimSpace(value)
	if number == "" {
		return "", fmt.Errorf("which breakpoint? Use `%s NUMBER ...`. %s", word, r.describe())
	}
	at, err := r.find([]string{number})
	if err != nil {
		return "", err
	}
	p := &r.points[at[0]]
	r.dirty = true
	if word == "condition" {
		p.Condition = value
		if value == "" {
			return p.message("is now unconditional"), nil
		}
		return p.message("is now conditional"), nil
	}
	count := 0
	if value != "" {
		if count, err = strconv.Atoi(value); err != nil {
			return "", fmt.Errorf("%q is not a number of hits. Use `ignore %s COUNT`", value, number)
		}
	}
	p.Ignore = max(0, count)
	if p.Ignore == 0 {
		return p.message("will stop the next time it is reached"), nil
	}
	return p.message(fmt.Sprintf("will ignore the next %d hits", p.Ignore)), nil
}
