package observe

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/schemas"
)

// tick is the interval at which Live redraws, to update its clocks.
const tick = 250 * time.Millisecond

// maxRows is how many running jobs Live shows at most.
const maxRows = 10

// Live draws some lines at the bottom of a terminal and removes them at the end: the progress, one
// line per running job, what waits, and the state of the model servers. It prints a permanent line for each new reason of a retry
// and each episode that is not resolved.
type Live struct {
	progress
	screen *Screen
}

// NewLive returns a Live that draws on a screen.
func NewLive(s *Screen) *Live { return &Live{progress: newProgress(s), screen: s} }

// RunStarted implements Observer.
func (l *Live) RunStarted(s Start) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.screen.Say(l.begin(s))
	if s.ToDo > 0 {
		l.draw()
		l.tickEvery(tick, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.draw()
		})
	}
}

// JobStarted implements Observer.
func (l *Live) JobStarted(schemas.Job, int) {}

// Step implements Observer.
func (l *Live) Step(schemas.Job, schemas.Step) {}

// JobRetried implements Observer.
func (l *Live) JobRetried(j schemas.Job, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line := l.retryLine(j, cause); line != "" {
		l.screen.Say(line)
	}
}

// JobFinished implements Observer.
func (l *Live) JobFinished(j schemas.Job, e Episode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.countFinished(e)
	if e.Outcome != schemas.OutcomeResolved {
		l.screen.Say(l.episodeLine(j, e))
	}
}

// RunFinished implements Observer. It removes the lines at the bottom.
func (l *Live) RunFinished(Report) {
	l.stopTicks()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.screen.Draw()
}

func (l *Live) draw() {
	columns, rows := l.screen.size()
	if columns <= 0 {
		columns = 80
	}
	a, now := l.start.Activities.Now(), time.Now()
	lines := []string{fit(l.bar(columns), append(l.countParts(a, false), l.timeParts(a, now)...), columns-1)}
	if parts := slices.Concat(l.outcomeParts(), l.costParts(a), l.speedParts(a, now)); len(parts) > 0 {
		lines = append(lines, fit("  ", parts, columns-1))
	}
	shown := maxRows
	if rows > 0 {
		shown = max(1, min(shown, rows-8))
	}
	lines = append(lines, jobRows(a.Running, now, columns-1, shown)...)
	sentences := a.Waits(l.start.CallTimeout, now)
	if l.start.Endpoints != nil {
		sentences = append(sentences, endpointTexts(l.start.Endpoints())...)
	}
	for _, sentence := range sentences {
		lines = append(lines, strings.Split(Wrap("  "+sentence, columns-1), "\n")...)
	}
	l.screen.Draw(lines...)
}

// bar returns a bar that shows how many jobs are done, if it fits.
func (l *Live) bar(columns int) string {
	if l.start.ToDo == 0 || columns < 60 {
		return "  "
	}
	const width = 20
	full := width * l.done / l.start.ToDo
	return "  " + strings.Repeat("█", full) + strings.Repeat("░", width-full) + "  "
}

// maxEndpoints is how many model servers Live shows at most.
const maxEndpoints = 3

// endpointTexts describes the model servers.
func endpointTexts(list []Endpoint) []string {
	var out []string
	for _, e := range list[:min(maxEndpoints, len(list))] {
		text := fmt.Sprintf("%s: %s running", e.Name, plural(e.Running, "call"))
		if e.Limit > 0 {
			text = fmt.Sprintf("%s: %d of %s running", e.Name, e.Running, plural(e.Limit, "call"))
		}
		if e.Refused > 0 {
			text += fmt.Sprintf(", %s refused because of its rate limits", Number(e.Refused))
		}
		if e.Failed > 0 {
			text += fmt.Sprintf(", %s failed", Number(e.Failed))
		}
		if e.Pause > 0 {
			text += ", asked to pause for " + age(e.Pause+time.Second)
		}
		out = append(out, text)
	}
	if n := len(list) - len(out); n > 0 {
		out = append(out, fmt.Sprintf("and %s", plural(n, "more model server")))
	}
	return out
}

// jobRows returns a table of the running jobs, at most limit of them: task, turn, worker, last tool,
// tokens, cost, and what each does since when. It leaves out columns that do not fit.
func jobRows(running []Running, now time.Time, columns, limit int) []string {
	shown := running[:min(limit, len(running))]
	var names, turns, workers, tools, tokens, costs, doings []string
	for _, r := range shown {
		names = append(names, fmt.Sprintf("%s#%d", r.Instance, r.Attempt))
		turns = append(turns, r.TurnText())
		workers = append(workers, textIf(r.Worker != "", "on "+r.Worker))
		tools = append(tools, textIf(r.LastTool != "" && r.Doing != InTool, "last "+r.LastTool))
		tokens = append(tokens, textIf(r.Tokens > 0, compact(r.Tokens)+" tokens"))
		costs = append(costs, textIf(r.CostUSD > 0, USD(r.CostUSD)))
		doings = append(doings, r.Text()+" "+age(now.Sub(r.Since)))
	}
	const minName = 12
	room := columns - 4 - widest(doings)
	cells := [][]string{turns, workers, tools, tokens, costs}
	for len(cells) > 0 && room-cellsWidth(cells) < min(minName, widest(names)) {
		cells = cells[:len(cells)-1]
	}
	nameWidth := max(min(widest(names), room-cellsWidth(cells)), 4)
	var lines []string
	for i := range shown {
		line := "    " + pad(shorten(names[i], nameWidth), nameWidth)
		for _, cell := range cells {
			if w := widest(cell); w > 0 {
				line += "  " + pad(cell[i], w)
			}
		}
		lines = append(lines, line+"  "+doings[i])
	}
	if n := len(running) - len(shown); n > 0 {
		lines = append(lines, fmt.Sprintf("    and %d more", n))
	}
	return lines
}

func textIf(ok bool, text string) string {
	if ok {
		return text
	}
	return ""
}

// cellsWidth returns the width of the columns of a table, with the space before each.
func cellsWidth(cells [][]string) int {
	n := 2 // before the last column
	for _, cell := range cells {
		if w := widest(cell); w > 0 {
			n += w + 2
		}
	}
	return n
}

func widest(texts []string) (n int) {
	for _, t := range texts {
		n = max(n, utf8.RuneCountInString(t))
	}
	return n
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// shorten replaces the middle of a text that is too wide. Names of tasks often differ at the end.
func shorten(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	head := (width - 1) / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
}
