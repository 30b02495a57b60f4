package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/schemas"
)

const walkHelp = "Enter: next, p: previous, 12: step 12, /text: search, /: search again, f: in full, q: quit"

// walker shows the steps of an episode one at a time.
type walker struct {
	stepFlags
	w      *screen
	steps  []schemas.StepRow
	at     int // index in steps; len(steps): the verdict
	search string
}

// walk reads commands and shows the steps that they name, until the user quits or passes the verdict.
func (f *showFlags) walk(ctx context.Context, s *State, e schemas.EpisodeRow, steps []schemas.StepRow) error {
	console := wire.NewConsole(s.Stdin, s.Stdout)
	v := walker{f.stepFlags, newScreen(s), steps, 0, ""}
	printEpisodeHead(v.w, e)
	fmt.Fprintf(v.w, "\n%s\n", walkHelp)
	for {
		if v.at == len(steps) {
			printEpisodeEnd(v.w, e)
		} else {
			v.printStep(v.w, steps[v.at])
		}
		for moved := false; !moved; {
			line, err := console.ReadLine(ctx, v.prompt(e), func(string) (int, []string) { return 0, nil })
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
			command := strings.TrimSpace(line)
			if command == "q" || command == "" && v.at == len(steps) {
				return nil
			}
			moved = v.do(command)
		}
	}
}

func (v *walker) prompt(e schemas.EpisodeRow) string {
	if v.at == len(v.steps) {
		return "\nverdict> "
	}
	return fmt.Sprintf("\nstep %d of %d> ", v.steps[v.at].StepIndex, e.NSteps-1)
}

// do executes a command. It returns whether another step is to be shown.
func (v *walker) do(command string) bool {
	number, err := strconv.Atoi(command)
	switch {
	case command == "" || command == "n":
		v.at = min(v.at+1, len(v.steps))
		return true
	case command == "p":
		if v.at == 0 {
			fmt.Fprintln(v.w, "This is the first step.")
			return false
		}
		v.at--
		return true
	case command == "f" && v.at < len(v.steps):
		full := stepFlags{full: true}
		full.printStep(v.w, v.steps[v.at])
		return false
	case strings.HasPrefix(command, "/"):
		return v.find(command[1:])
	case err == nil:
		i := slices.IndexFunc(v.steps, func(s schemas.StepRow) bool { return int(s.StepIndex) == number })
		if i < 0 {
			fmt.Fprintf(v.w, "There is no step %d here.\n", number)
			return false
		}
		v.at = i
		return true
	}
	fmt.Fprintln(v.w, walkHelp)
	return false
}

// find moves to the next step with a text, ignoring case. It goes on from the beginning after the last step.
func (v *walker) find(text string) bool {
	if text != "" {
		v.search = strings.ToLower(text)
	}
	all := &stepFlags{full: true}
	for i := range v.steps {
		k := (v.at + 1 + i) % len(v.steps)
		var shown strings.Builder
		all.printStep(&screen{Writer: &shown}, v.steps[k])
		if v.search != "" && strings.Contains(strings.ToLower(shown.String()), v.search) {
			v.at = k
			return true
		}
	}
	fmt.Fprintf(v.w, "No step has %q.\n", v.search)
	return false
}
