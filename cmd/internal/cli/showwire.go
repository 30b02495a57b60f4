package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
)

// showCalls prints the model calls of the shown steps: every attempt, with the bytes of the
// request and the response. If all steps are shown, it also prints calls from which no step
// was made.
func (f *showFlags) showCalls(s *State, data *wire.Data, t sinks.Trajectory, steps []schemas.StepRow) error {
	stepOf := map[string]int32{}
	for _, step := range steps {
		if step.RequestSHA256 != nil {
			stepOf[*step.RequestSHA256] = step.StepIndex
		}
	}
	all := len(steps) == len(t.Steps)
	calls, err := data.Calls(t.Episode.EpisodeID, func(sha string) bool {
		_, ok := stepOf[sha]
		return ok || all
	})
	if err != nil {
		return Usage(err)
	}
	for sha, step := range stepOf {
		if !slices.ContainsFunc(calls, func(c wire.Call) bool { return c.RequestSHA256 == sha }) {
			return Usage(fmt.Errorf("the run directory does not hold the calls of step %d", step))
		}
	}
	return f.printCalls(s, t.Episode.EpisodeID, calls, stepOf)
}

// printCalls prints calls. "-" takes the place of the step of a call from which no step was
// made.
func (f *showFlags) printCalls(s *State, episode string, calls []wire.Call, stepOf map[string]int32) error {
	out := []map[string]any{}
	for i, c := range calls {
		step, known := stepOf[c.RequestSHA256]
		if f.asJSON {
			row := map[string]any{
				"at": c.At, "status": c.Status, "failure": c.Failure,
				"request_sha256": c.RequestSHA256, "request": string(c.Request), "response": string(c.Response),
			}
			if known {
				row["step_index"] = step
			}
			out = append(out, row)
			continue
		}
		name := "-"
		if known {
			name = fmt.Sprint(step)
		}
		printCall(s.Stdout, name, i, calls)
	}
	if f.asJSON {
		return PrintJSON(s, map[string]any{"schema": "tracesmith.wire/1", "episode_id": episode, "calls": out})
	}
	return nil
}

// printCall prints calls[i], with its number among the attempts to send the same request.
func printCall(w io.Writer, step string, i int, calls []wire.Call) {
	first, end := i, i+1
	for first > 0 && calls[first-1].RequestSHA256 == calls[i].RequestSHA256 {
		first--
	}
	for end < len(calls) && calls[end].RequestSHA256 == calls[i].RequestSHA256 {
		end++
	}
	c := calls[i]
	result := fmt.Sprintf("status %d", c.Status)
	if c.Failure != "" {
		result += ", " + c.Failure
	}
	fmt.Fprintf(w, "── %s · call %d of %d · %s · %s\n", step, i-first+1, end-first, result, c.At.Format("2006-01-02 15:04:05.000"))
	if i == first { // the other attempts sent the same request
		fmt.Fprintf(w, "%s\n", c.Request)
	}
	fmt.Fprintf(w, "← %s\n\n", c.Response)
}

// deadLetterError returns the error for a name that matches a job without an episode. It
// returns nil if the name matches no such job, or if --wire asks for the job's calls.
func (f *showFlags) deadLetterError(ctx context.Context, data *wire.Data, name string) error {
	dead, err := data.DeadLetters(ctx)
	if err != nil {
		return Usage(err)
	}
	i := slices.IndexFunc(dead, func(d wire.DeadLetter) bool { return matches(name, d.UnitKey, d.Instance) })
	if i < 0 || f.bytes {
		return nil
	}
	return &Error{Code: ExitUsage, Try: "run with --retry infra; all such jobs are in " + data.DeadLettersPath(),
		Err: fmt.Errorf("job %s has no episode: %s", dead[i].UnitKey, deadReason(dead[i]))}
}

// showUnfinished shows the calls of an episode that is not staged yet. found is false if no
// such episode matches the name.
func (f *showFlags) showUnfinished(ctx context.Context, s *State, data *wire.Data, name string) (found bool, err error) {
	unfinished, err := data.Unfinished(ctx)
	if err != nil {
		return false, Usage(err)
	}
	i := slices.IndexFunc(unfinished, func(u wire.Unfinished) bool { return matches(name, u.ID, u.Instance) })
	if i < 0 {
		return false, nil
	}
	u := unfinished[i]
	reason := fmt.Errorf("episode %s is not finished yet: repeat the run command to continue it", u.ID)
	if u.Dead {
		reason = fmt.Errorf("job %s has no episode; these are the calls that it made", u.ID)
	}
	if !f.bytes {
		return true, &Error{Code: ExitUsage, Try: shell("tracesmith", "show", data.Place, name, "--wire") + "   # its model calls so far", Err: reason}
	}
	calls, err := data.Calls(u.ID, func(string) bool { return true })
	switch {
	case err != nil:
		return true, Usage(err)
	case len(calls) == 0:
		return true, Usage(errors.Join(reason, errors.New("it has called no model so far")))
	}
	fmt.Fprintf(s.Stderr, "%v\n", reason)
	return true, f.printCalls(s, u.ID, calls, nil)
}
