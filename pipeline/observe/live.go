package observe

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/schemas"
)

// tick is the interval at which Live redraws, to update its clocks.
const tick = 250 * time.Millisecond

// maxRows is how many running jobs Live shows at most.
const maxRows = 10

// Live draws some lines at the bottom of a terminal and removes them at the end: a status line, one
// line per running job, and what waits. It prints a permanent line for each new reason of a retry
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
	l.say(l.begin(s))
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
		l.say(line)
	}
}

// JobFinished implements Observer.
func (l *Live) JobFinished(j schemas.Job, e Episode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.countFinished(e)
	if e.Outcome != schemas.OutcomeResolved {
		l.say(l.episodeLine(j, e))
	}
}

// RunFinished implements Observer. It removes the lines at the bottom.
func (l *Live) RunFinished(Report) {
	l.stopTicks()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.screen.Draw()
}

// say prints a permanent line above those at the bottom.
func (l *Live) say(line string) {
	columns, _ := l.screen.size()
	fmt.Fprintln(l.screen, wrap(line, columns))
}

func (l *Live) draw() {
	columns, rows := l.screen.size()
	a, now := l.start.Activities.Now(), time.Now()
	lines := []string{fit(l.statusParts(a, false), columns-3)}
	lines = append(lines, jobRows(a.Running, now, columns, rows)...)
	for _, sentence := range a.Waits(l.start.CallTimeout, now) {
		lines = append(lines, strings.Split(wrap("  "+sentence, columns-3), "\n")...)
	}
	l.screen.Draw(lines...)
}

// jobRows returns a table of the running jobs: task, turn, last tool, and what each does since when.
// It leaves out columns that do not fit into the terminal, and jobs that do not fit into its rows.
func jobRows(running []Running, now time.Time, columns, rows int) []string {
	limit := maxRows
	if rows > 0 {
		limit = max(1, min(limit, rows-6))
	}
	shown := running[:min(limit, len(running))]
	var names, turns, tools, doings []string
	for _, r := range shown {
		names = append(names, fmt.Sprintf("%s#%d", r.Instance, r.Attempt))
		turns = append(turns, r.TurnText())
		tool := ""
		if r.LastTool != "" && r.Doing != InTool {
			tool = "last " + r.LastTool
		}
		tools = append(tools, tool)
		doings = append(doings, r.Text()+" "+age(now.Sub(r.Since)))
	}
	if columns <= 0 {
		columns = 80
	}
	const minName = 12
	room := columns - 3 - 4 - widest(doings)
	cells := [][]string{turns, tools}
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
