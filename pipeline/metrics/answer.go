package metrics

import "strings"

// Kinds of AnswerItem.
const (
	StopItem   = "stop"   // the program stopped at a place
	FrameItem  = "frame"  // a stack frame that up, down or where shows
	ValueItem  = "value"  // the value of an expression
	ErrorItem  = "error"  // an error, without the stars that precede it
	OutputItem = "output" // other lines
	// CurrentItem is the last item of an answer that names the current frame below its output.
	CurrentItem = "current"
)

// AnswerItem is a part of an answer of the debugger.
type AnswerItem struct {
	Kind     string
	Command  string // the command that it answers; "" = it precedes the first one
	File     string // stops and frames, as the answer names it
	Line     int
	Function string
	Event    string // stops: line, call or return
	Name     string // values: the expression
	Text     string // values, errors and output; frames: the return value, if the answer shows it
}

// debuggerAnswer reads the lines of an answer of the debugger. It assigns the output to the commands of the call. A
// tuple, args and locals() are one value per name. command is that of the call.
func debuggerAnswer(lines []string, command string) []AnswerItem {
	current := AnswerItem{}
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], "Current frame:") {
			current, lines = currentFrame(lines, i), lines[:i]
			break
		}
	}
	if len(lines) > 0 && lines[0] == "Pdb command output:" { // debug-gym
		lines = lines[1:]
	}
	p := answerParser{lines: lines}
	commands := debuggerCommands(command)
	p.preamble()
	for i, c := range commands {
		next := ""
		if i+1 < len(commands) {
			next = commands[i+1]
		}
		p.command(c, next, i+1 == len(commands))
	}
	p.rest(len(p.lines))
	if current.Kind != "" {
		p.items = append(p.items, current)
	}
	return p.items
}

// currentFrame reads "Current frame: path:12 in name" or, in debug-gym, the path below such a line.
func currentFrame(lines []string, i int) AnswerItem {
	item := AnswerItem{Kind: CurrentItem}
	place := strings.TrimPrefix(strings.TrimPrefix(lines[i], "Current frame:"), " ")
	if place == "" && i+1 < len(lines) {
		place = lines[i+1]
	}
	place, function, _ := strings.Cut(place, " in ")
	item.Function, _, _ = strings.Cut(function, " ") // "f (about to return)"
	item.File = place
	if colon := strings.LastIndexByte(place, ':'); colon >= 0 {
		if n, rest, ok := leadingNumber(place[colon+1:]); ok && rest == "" {
			item.File, item.Line = place[:colon], n
		}
	}
	return item
}

type answerParser struct {
	lines   []string
	at      int
	current string // the command
	items   []AnswerItem
}

func (p *answerParser) add(item AnswerItem) {
	item.Command = p.current
	p.items = append(p.items, item)
}

// peek returns the next line, or "".
func (p *answerParser) peek() string {
	if p.at < len(p.lines) {
		return p.lines[p.at]
	}
	return ""
}

// rest takes the lines up to an index as output.
func (p *answerParser) rest(end int) {
	if p.at < end {
		p.add(AnswerItem{Kind: OutputItem, Text: strings.Join(p.lines[p.at:end], "\n")})
		p.at = end
	}
}

// preamble reads what the debugger says when it starts the program.
func (p *answerParser) preamble() {
	for i := p.at; i < min(p.at+4, len(p.lines)); i++ {
		if strings.HasPrefix(p.lines[i], "The program is paused before its first line") {
			p.rest(i + 1)
			p.stop()
			return
		}
	}
}

func (p *answerParser) command(c, next string, isLast bool) {
	p.current = c
	if text, ok := strings.CutPrefix(p.peek(), "*** "); ok {
		p.at++
		p.add(AnswerItem{Kind: ErrorItem, Name: shownExpression(c), Text: text})
		return
	}
	word, rest, _ := strings.Cut(c, " ")
	switch word {
	case "run", "restart":
		p.preamble()
	case "a", "args":
		p.args()
	case "w", "where", "bt":
		for p.frame() {
		}
	case "u", "up", "d", "down":
		p.frame()
	case "l", "list", "ll", "longlist", "source":
		end := p.at
		for end < len(p.lines) && (isListed(p.lines[end]) || p.lines[end] == "[EOF]") {
			end++
		}
		p.rest(end)
	case "b", "break", "tbreak", "cl", "clear", "condition", "enable", "disable", "ignore":
		p.notices(rest == "")
	case "display":
		p.displays()
	default:
		if runs[word] {
			p.stop()
		} else if name := shownExpression(c); name != "" {
			p.value(name, next, isLast)
		}
	}
}

// notices reads what a command says about breakpoints. A list of them may have any number of lines.
func (p *answerParser) notices(isList bool) {
	end := p.at
	for end < len(p.lines) {
		l := p.lines[end]
		if !strings.HasPrefix(l, "Breakpoint ") && !strings.HasPrefix(l, "Deleted ") && !(isList && (l == "" || l[0] == '\t' || l[0] == ' ' ||
			strings.HasPrefix(l, "Num ") || '0' <= l[0] && l[0] <= '9')) {
			break
		}
		end++
	}
	if end == p.at && p.at < len(p.lines) && strings.Contains(strings.ToLower(p.lines[p.at]), "breakpoint") {
		end++
	}
	p.rest(end)
}

// stop reads the output of a command that runs the program, up to the place where it stops. Without
// such a place, it reads everything.
func (p *answerParser) stop() {
	event := "line"
	for i := p.at; i < len(p.lines); i++ {
		switch l := p.lines[i]; {
		case l == "--Return--":
			event = "return"
		case l == "--Call--":
			event = "call"
		case strings.HasPrefix(l, "> "):
			file, n, function, returned, ok := stackFrame(l)
			if !ok {
				continue
			}
			p.rest(i)
			p.at++
			returned = p.whole(returned)
			p.add(AnswerItem{Kind: StopItem, File: file, Line: n, Function: function, Event: event, Text: returned})
			p.source()
			p.displays()
			return
		}
	}
	p.rest(len(p.lines))
}

// frame reads one stack frame.
func (p *answerParser) frame() bool {
	file, n, function, returned, ok := stackFrame(p.peek())
	if !ok {
		return false
	}
	p.at++
	returned = p.whole(returned)
	p.add(AnswerItem{Kind: FrameItem, File: file, Line: n, Function: function, Text: returned})
	p.source()
	return true
}

// source skips the source line below a stack frame.
func (p *answerParser) source() {
	if strings.HasPrefix(p.peek(), "-> ") {
		p.at++
	}
}

// displays reads the values of expressions on display.
func (p *answerParser) displays() {
	for {
		line := p.peek()
		if !strings.HasPrefix(line, "display ") {
			return
		}
		m := displayLine.FindStringSubmatch(line)
		if m == nil {
			return
		}
		p.at++
		p.values(m[1], m[2])
	}
}

// args reads one value per argument. A value may span several lines.
func (p *answerParser) args() {
	for {
		name, value, ok := nameValue(p.peek())
		if !ok {
			return
		}
		p.at++
		p.add(AnswerItem{Kind: ValueItem, Name: name, Text: p.whole(value)})
	}
}

// whole returns the text of a value whose first line has been read. The value may lack a closing bracket, because pdb shortens it;
// then the line of source that follows ends it.
func (p *answerParser) whole(text string) string {
	for isOpen(text) && p.at < len(p.lines) && !strings.HasPrefix(p.lines[p.at], "-> ") {
		text += "\n" + p.lines[p.at]
		p.at++
	}
	return text
}

// value reads what a command prints. Several values in a row are told apart by their brackets.
func (p *answerParser) value(name, next string, isLast bool) {
	if p.at >= len(p.lines) {
		return
	}
	end := p.at + 1
	word, _, _ := strings.Cut(next, " ")
	switch {
	case isLast:
		end = len(p.lines)
	case runs[word]:
		for end < len(p.lines) && !strings.HasPrefix(p.lines[end], "> ") && p.lines[end] != "--Return--" && p.lines[end] != "--Call--" &&
			!strings.HasPrefix(p.lines[end], "Breakpoint ") {
			end++
		}
	default:
		for end < len(p.lines) && isOpen(strings.Join(p.lines[p.at:end], "\n")) {
			end++
		}
	}
	text := strings.Join(p.lines[p.at:end], "\n")
	p.at = end
	p.values(name, text)
}

func (p *answerParser) values(name, text string) {
	for _, v := range splitValues(name, text) {
		p.add(AnswerItem{Kind: ValueItem, Name: v.name, Text: v.text})
	}
}

// isListed reports whether a line is one of a source listing.
func isListed(line string) bool {
	_, ok := numbered(line)
	return ok && strings.Contains(line, "\t")
}

// StartsProgram reports whether an output item says that the program was started.
func StartsProgram(output string) bool {
	return strings.Contains(output, "The program is paused before its first line")
}

// EndsProgram reports whether an output item says that the program has ended.
func EndsProgram(output string) bool {
	return strings.Contains(output, "The program has ended") || strings.Contains(output, "The debugging session has ended")
}

// IsDump reports whether a command prints all variables of a frame, or all attributes of an object.
func IsDump(command string) bool {
	expression := strings.Join(strings.Fields(shownExpression(command)), " ")
	return strings.Contains(expression, "locals()") || strings.Contains(expression, "globals()") || strings.Contains(expression, "vars(") ||
		strings.HasSuffix(expression, ".__dict__")
}
