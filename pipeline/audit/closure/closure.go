// Package closure finds what the steps of an episode name before the episode has shown it, and measures
// how surprising the places are that they choose. It reads rows only, and imports no agent, so it shares
// no code with those that it checks.
package closure

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tracesmith/tracesmith/agents/shown"
	"github.com/tracesmith/tracesmith/schemas"
)

// Closure follows an episode, and knows what it has shown up to a step: the prompts, the descriptions
// of the tools and the observations, and what a fixed list of rules derives from them. See
// docs/decisions/audit.md.
type Closure struct {
	known
	names    map[string]bool
	existing *existing       // what exists, if the repository is unknown; nil = do not ask
	named    map[Entity]bool // entities that an earlier step named
	pending  []pendingRow
	turn     int32
	frame    string // last element of the path of the debugger's frame
	stops    int
	failing  string // name of the first failing test
	isEdited bool
}

// pendingRow is a row of the current turn, whose observation the other calls of the turn could not know.
type pendingRow struct {
	row     *schemas.StepRow
	lines   []shown.Line // that its answer shows
	path    string       // that the call names
	written []string     // files that the call writes, and names that its code binds
	args    map[string]any
}

// NewClosure returns the closure before the first row. names holds the identifiers of the repository;
// nil if they are unknown.
func NewClosure(tools []schemas.ToolSchema, names map[string]bool) *Closure {
	c := &Closure{names: names, named: map[Entity]bool{}, turn: -1}
	key := toolsKey(tools)
	if k, ok := toolTexts.Load(key); ok {
		c.known = k.(*known).clone()
		return c
	}
	c.known = known{lines: map[string]*lineSet{}, targets: newTargets()}
	for _, t := range tools {
		c.learn(t.Name+"\n"+t.Description+"\n"+string(t.Parameters), "", false)
	}
	if toolCount.Add(1) < maxToolTexts {
		k := c.known.clone()
		toolTexts.Store(key, &k)
	}
	return c
}

// toolTexts keeps what descriptions of tools show, because most episodes of a run have the same.
var (
	toolTexts sync.Map // by toolsKey
	toolCount atomic.Int32
	toolSeed  = maphash.MakeSeed()
)

const maxToolTexts = 256

func toolsKey(tools []schemas.ToolSchema) uint64 {
	var h maphash.Hash
	h.SetSeed(toolSeed)
	for _, t := range tools {
		_, _ = h.WriteString(t.Name) // cannot fail
		_ = h.WriteByte(0)
		_, _ = h.WriteString(t.Description)
		_ = h.WriteByte(0)
		_, _ = h.Write(t.Parameters)
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

// Step returns what a row names although no earlier turn had shown it. It then learns what the row
// shows; lines are the lines of files in its answer, if they are known. Rows must come in their order. An
// entity counts in the first step that names it.
func (c *Closure) Step(row *schemas.StepRow, lines []shown.Line) []Entity {
	found, _, _ := c.step(row, lines)
	return found
}

func (c *Closure) step(row *schemas.StepRow, lines []shown.Line) (found []Entity, bits float64, isTargeted bool) {
	if row.Source != "agent" {
		c.flush()
		c.learn(row.Message, "", true)
		c.observe(pendingRow{row: row})
		return nil, 0, false
	}
	if turn := schemas.Value(row.TurnIndex); row.TurnIndex == nil || turn != c.turn {
		c.flush()
		c.turn = turn
	}
	var args map[string]any
	if row.ArgumentsJSON != nil && *row.ArgumentsJSON != "{}" {
		_ = json.Unmarshal([]byte(*row.ArgumentsJSON), &args) // arguments that are no object name nothing
	}
	bits, isTargeted = c.surprise(row, args)
	k := c.check(row, args)
	found = slices.DeleteFunc(k.out, func(e Entity) bool {
		isAgain := c.named[e]
		c.named[e] = true
		return isAgain || c.existing != nil && !c.existing.has(e, &c.known)
	})
	name, _ := args["path"].(string)
	c.pending = append(c.pending, pendingRow{row, lines, name, k.written, args})
	return found, bits, isTargeted
}

// failed matches the name of a failing test in the reports of pytest, unittest and eval.
var failed = regexp.MustCompile(`(?m)^FAILED \S*?::(\S+)|^FAIL: (\w+)`)

func (c *Closure) flush() {
	for _, p := range c.pending {
		c.observe(p)
	}
	c.pending = c.pending[:0]
}

// observe learns what a row shows.
func (c *Closure) observe(p pendingRow) {
	row := p.row
	if row.FrameFile != nil {
		c.frame = baseName(*row.FrameFile)
		if schemas.Value(row.PDBCommand) != "" {
			c.stops++
		}
	}
	if row.Observation != nil {
		file := c.frame
		if len(row.Targets) > 0 {
			file, _, _ = strings.Cut(row.Targets[0], ":")
		} else if row.ToolName != nil && *row.ToolName != "pdb" {
			file = p.path
		}
		c.learn(*row.Observation, file, true)
		if c.failing == "" && strings.Contains(*row.Observation, "FAIL") {
			if m := failed.FindStringSubmatch(*row.Observation); m != nil {
				c.failing = m[1] + m[2]
			}
		}
		for _, t := range row.Targets {
			c.learn(t, "", true)
		}
	}
	for _, l := range p.lines {
		c.addLine(baseName(l.File), l.Number)
	}
	for _, name := range p.written {
		c.learn(name, "", false)
	}
	if row.Source == "agent" {
		c.repeatable(row.Message)
		c.repeatable(schemas.Value(row.Reasoning))
		c.repeatableArgument(p.args)
	}
	if row.TriggeredJSON != nil {
		c.learn(*row.TriggeredJSON, "", true)
	}
	category := schemas.Value(row.ToolCategory)
	if (category == "edit" || category == "bash" && edits.MatchString(schemas.Value(row.ArgumentsJSON))) && (row.IsError == nil || !*row.IsError) {
		c.isEdited = true
	}
}

// edits matches shell commands that change files or show that they have changed.
var edits = regexp.MustCompile(`\bsed -i|\bgit (?:apply|diff)|\bpatch -p|\bperl -p?i|\.write\(|write_text|\b(?:cp|mv) `)

// check finds what the texts and arguments of a row name.
func (c *Closure) check(row *schemas.StepRow, args map[string]any) *checker {
	k := &checker{known: &c.known, names: c.names}
	k.file = c.fileOf(args)
	for _, name := range []string{"end", "end_line"} {
		if last, ok := args[name].(float64); ok {
			k.last = int(last)
		}
	}
	call := ""
	for _, name := range slices.Sorted(maps.Keys(args)) {
		call += c.argument(k, schemas.Value(row.ToolName), name, args[name])
	}
	if k.file == "" {
		k.file = c.frame
	}
	text := row.Message
	if row.Reasoning != nil {
		text += "\n" + *row.Reasoning
	}
	if text != "" {
		// A sentence may be about the file of the call or of the frame, so a line of any displayed file counts.
		k.file = ""
		k.own = text
		k.prose(text)
	}
	if !c.isEdited {
		k.assertions(text+"\n"+call, c.stops)
	}
	return k
}

// fileOf returns the last element of the path that a call names.
func (c *Closure) fileOf(args map[string]any) string {
	for _, name := range []string{"path", "file", "file_path", "filename"} {
		if p, ok := args[name].(string); ok {
			return baseName(cleanPath(p))
		}
	}
	return ""
}

// argument checks an argument of a call. It returns the text in it that is prose.
func (c *Closure) argument(k *checker, tool, name string, value any) (text string) {
	switch v := value.(type) {
	case map[string]any:
		for _, n := range slices.Sorted(maps.Keys(v)) {
			text += c.argument(k, tool, n, v[n])
		}
	case []any:
		for _, element := range v {
			text += c.argument(k, tool, name, element)
		}
	case float64:
		switch name {
		case "start", "start_line":
			if n := int(v); n%50 > 1 || n == 0 {
				k.view(k.file, n, k.last)
			}
		case "line", "lineno", "line_number", "insert_line":
			if n := int(v); n%50 > 1 || n == 0 {
				k.line(k.file, n, nearLines)
			}
		case "end", "end_line", "view_range":
			if n := int(v); n%10 > 1 {
				k.endLine(n)
			}
		}
	case string:
		return c.textArgument(k, tool, name, v)
	}
	return text
}

// endLine checks the last line of a view, which may be beyond what is known.
func (k *checker) endLine(n int) {
	if !k.wasShown(fmt.Sprint(n)) && !k.hasLineIn(k.file, n-maxView, n) {
		k.line(k.file, n, nearLines)
	}
}

// textArgument checks a text that is an argument of a call, and returns it if it is prose.
func (c *Closure) textArgument(k *checker, tool, name, v string) string {
	switch name {
	case "path", "file", "file_path", "filename", "dir", "directory":
		if p := strings.TrimSuffix(strings.TrimPrefix(cleanPath(v), "./"), "/"); p != "" && tool != "create" {
			k.path(p, words)
		}
	case "command", "cmd", "code":
		if tool == "pdb" {
			continues := 0
			for command := range strings.SplitSeq(strings.ReplaceAll(v, ";;", "\n"), "\n") {
				if command = strings.TrimSpace(command); command == "c" || command == "cont" || command == "continue" {
					continues++
				}
				k.debugger(command, c.frame)
			}
			if continues > 2 {
				k.count(fmt.Sprint(continues))
			}
			return ""
		}
		k.shell(v)
	case "entrypoint":
		k.shell(v)
	case "pattern", "query", "regex", "search_term", "search":
		k.pattern(v)
	case "new_code", "new_str", "old_str", "file_text", "content", "code_edit", "patch":
		k.code(v)
	case "start", "end", "view_range", "security_risk":
	default:
		k.prose(v)
		return "\n" + v
	}
	return ""
}

// oneOf matches a class of one character, which a pattern may contain to hide a word.
var oneOf = regexp.MustCompile(`\[(\w)\]`)

// pattern checks a regular expression or a text to search for.
func (k *checker) pattern(text string) {
	k.text(withoutEscapes(oneOf.ReplaceAllString(text, "$1")), pattern)
}

// debugger checks a command of pdb.
func (k *checker) debugger(command, frame string) {
	word, rest, _ := strings.Cut(command, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "b", "break", "tbreak":
		place, condition, _ := strings.Cut(rest, ",")
		k.place(strings.TrimSpace(place), frame)
		k.condition(condition)
	case "l", "list":
		first, _, _ := strings.Cut(rest, ",")
		k.line(frame, atoi(strings.TrimSpace(first)), nearLines)
	case "until", "unt", "j", "jump":
		for number := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == ',' || r == ' ' }) {
			if v, n := numberAt(number); n == len(number) && n > 0 {
				k.line(frame, atoi(v), 0)
			}
		}
	case "condition":
		_, condition, _ := strings.Cut(rest, " ")
		k.condition(condition)
	case "ignore":
		if _, count, ok := strings.Cut(rest, " "); ok {
			k.count(strings.TrimSpace(count))
		}
	case "cl", "clear", "enable", "disable", "tb", "u", "up", "d", "down", "n", "s", "r", "c", "w", "a", "bt", "q":
		if rest != "" && strings.Contains(rest, ":") {
			k.place(rest, frame)
		} else if strings.HasPrefix(rest, "=") {
			k.code(command)
		}
	case "run", "restart":
		k.shell(rest)
	default:
		k.code(command)
	}
}

// place checks the place of a breakpoint: path:line, line, path:function or function.
func (k *checker) place(text, frame string) {
	file, at, ok := strings.Cut(text, ":")
	if !ok {
		file, at = "", text
	}
	if file != "" {
		k.path(cleanPath(file), words)
		frame = baseName(file)
	}
	if v, n := numberAt(at); n > 0 && n == len(at) {
		k.line(frame, atoi(v), 0)
		return
	}
	k.text(at, code)
}

// condition checks the condition of a breakpoint. Its values must have been shown, so that it
// cannot single out a later iteration.
func (k *checker) condition(text string) {
	before := len(k.out)
	k.code(strings.TrimSpace(text))
	for i := before; i < len(k.out); i++ {
		if k.out[i].Kind == Value {
			k.out[i].Kind = Iteration
		}
	}
	for i := 0; i < len(text); i++ {
		if classes[text[i]] == digit && (i == 0 || classes[text[i-1]]&(letter|digit) == 0) {
			value, n := numberAt(text[i:])
			if len(value) == 1 {
				k.count(value)
			}
			i += n
		}
	}
}

// count checks a number that counts iterations or is compared in a condition.
func (k *checker) count(value string) {
	if v, n := numberAt(value); n > 0 && v > "1" || len(v) > 1 {
		if !k.wasShown(v) {
			k.report(Iteration, value)
		}
	}
}
