package cli

import (
	"fmt"
	"io"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"

	"github.com/tracesmith/tracesmith/cmd/tracesmith/internal/wire"
)

// wire prints what was said to the model server for the shown steps: each try,
// the request as it was sent, the response as it came.
func (f *showFlags) wire(s *State, data *wire.Data, t sinks.Trajectory, steps []schemas.StepRow) error {
	out := []map[string]any{}
	for _, step := range steps {
		if step.RequestSHA256 == nil {
			continue
		}
		calls, err := data.Calls(t.Episode.EpisodeID, *step.RequestSHA256)
		if err != nil {
			return Usage(err)
		}
		for i, ex := range calls {
			if f.asJSON {
				out = append(out, map[string]any{
					"step_index": step.StepIndex, "at": ex.At, "status": ex.Status, "failure": ex.Failure,
					"request_sha256": *step.RequestSHA256, "request": string(ex.Request), "response": string(ex.Response),
				})
				continue
			}
			printCall(s.Stdout, step.StepIndex, i, len(calls), ex)
		}
	}
	if f.asJSON {
		return printJSON(s, map[string]any{"schema": "tracesmith.wire/1", "episode_id": t.Episode.EpisodeID, "calls": out})
	}
	return nil
}

func printCall(w io.Writer, step int32, n, of int, ex llms.Exchange) {
	ended := fmt.Sprintf("status %d", ex.Status)
	if ex.Failure != "" {
		ended += ", " + ex.Failure
	}
	fmt.Fprintf(w, "── %d · call %d of %d · %s · %s\n", step, n+1, of, ended, ex.At.Format("2006-01-02 15:04:05.000"))
	if n == 0 { // the others asked the same
		fmt.Fprintf(w, "%s\n", ex.Request)
	}
	fmt.Fprintf(w, "← %s\n\n", ex.Response)
}
