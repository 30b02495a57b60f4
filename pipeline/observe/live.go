package observe

import (
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/schemas"
)

// Live draws one status line at the bottom of a terminal and removes it at the end. It
// prints a permanent line for each retry and each episode that is not resolved.
type Live struct {
	progress
	width func() int
	drawn bool // the terminal shows the status line
	quit  chan struct{}
	ticks sync.WaitGroup
}

// tick is the interval at which the line is redrawn, to update its clock.
const tick = 250 * time.Millisecond

// NewLive returns a Live that writes to the terminal w. width returns its current number of
// columns, or 0 if that is unknown.
func NewLive(w io.Writer, width func() int) *Live {
	return &Live{progress: newProgress(w), width: width}
}

// RunStarted implements Observer.
func (l *Live) RunStarted(s Start) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin(s)
	if s.ToDo == 0 {
		return
	}
	l.quit = make(chan struct{})
	l.ticks.Go(func() {
		t := time.NewTicker(tick)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				l.mu.Lock()
				if l.done+len(l.running) > 0 { // before the first job, other messages may be printed
					l.draw()
				}
				l.mu.Unlock()
			case <-l.quit:
				return
			}
		}
	})
}

// JobStarted implements Observer.
func (l *Live) JobStarted(j schemas.Job, _ int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[j.EpisodeID] = true
}

// Step implements Observer.
func (l *Live) Step(schemas.Job, schemas.Step) {}

// JobRetried implements Observer.
func (l *Live) JobRetried(j schemas.Job, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.say(l.retryLine(j, cause))
}

// JobFinished implements Observer.
func (l *Live) JobFinished(j schemas.Job, e Episode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.countFinished(j, e)
	if e.Outcome != schemas.OutcomeResolved {
		l.say(l.episodeLine(j, e))
	}
	l.draw()
}

// RunFinished implements Observer. It removes the status line.
func (l *Live) RunFinished(Report) {
	if l.quit != nil {
		close(l.quit)
		l.ticks.Wait()
		l.quit = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
}

// say prints a permanent line above the status line.
func (l *Live) say(line string) {
	l.clear()
	fmt.Fprintln(l.W, line)
	l.draw()
}

func (l *Live) draw() {
	fmt.Fprint(l.W, "\r\x1b[K", truncate(l.statusLine(), l.width()))
	l.drawn = true
}

func (l *Live) clear() {
	if l.drawn {
		fmt.Fprint(l.W, "\r\x1b[K")
		l.drawn = false
	}
}

// truncate shortens a line so that it does not wrap, and leaves the last column free.
func truncate(line string, width int) string {
	if width <= 0 || utf8.RuneCountInString(line) < width {
		return line
	}
	return string([]rune(line)[:width-1])
}
