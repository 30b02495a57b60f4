package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
)

type prepullFlags struct {
	taskFlags
	workers int
	asJSON  bool
}

func newTasksPrepull(s *State) *cobra.Command {
	var f prepullFlags
	c := &cobra.Command{
		Use: "prepull [TASK...]", Short: "Pull the container images that tasks run in", Args: RangeArgs(0, -1),
		Long: `Pull every image that the tasks name, unless the daemon has it. If the setting
sandbox.image is set, all tasks run in that image instead. An image that cannot
be pulled does not stop the others. To pull what is missing, repeat the command;
the daemon keeps the layers it has.

Exit code 3: some images could not be pulled. Exit code 7: none could.`,
		Example: "  tracesmith tasks prepull --source swebench -p tasks.with.repos=clones -n 4",
		RunE: func(c *cobra.Command, args []string) error {
			return Resumable(c.Context(), f.pull(c.Context(), s, args))
		},
	}
	f.Add(c)
	f.AddSandbox(c, "")
	c.Flags().IntVarP(&f.workers, "workers", "n", 2, "images to pull at once")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

func (f *prepullFlags) pull(ctx context.Context, s *State, names []string) error {
	if f.workers < 1 {
		return Usage(fmt.Errorf("--workers must be at least 1, got %d", f.workers))
	}
	_, bench, tasks, err := f.openTasks(ctx, s, names)
	if err != nil {
		return err
	}
	defer func() { _ = bench.Close() }()
	list, err := bench.Images(tasks)
	if err != nil {
		return Usage(err)
	}
	p := &pullProgress{liveLine: liveLine{w: s.Stderr, live: s.TTY}, total: len(list)}
	fmt.Fprintf(s.Stderr, "prepull: %s, %s, %d at once\n", count(len(tasks), "task"), count(len(list), "image"), f.workers)
	bench.Pull(ctx, list, f.workers, wire.PullProgress{Started: p.started, Bytes: p.bytes, Done: p.done})
	p.erase()
	if err := f.print(s, list); err != nil {
		return err
	}
	return pullError(ctx, list)
}

// pullError returns an error if images could not be pulled or ctx has ended.
func pullError(ctx context.Context, list []wire.Image) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	failed, reason := 0, ""
	for _, i := range list {
		if i.Status == wire.ImageFailed {
			if failed++; reason == "" {
				reason = i.Reason
			}
		}
	}
	switch failed {
	case 0:
		return nil
	case len(list):
		return &Error{Code: ExitPreflight, Err: fmt.Errorf("could not pull any image; the first error: %s", reason)}
	}
	return &Error{Code: ExitIncomplete, Err: fmt.Errorf("could not pull %d of %d images; the first error: %s", failed, len(list), reason),
		Try: "the same command again: it pulls what is missing"}
}

// prepullOutput is what tasks prepull --json prints.
type prepullOutput struct {
	Schema string       `json:"schema"`
	Images []wire.Image `json:"images"`
}

func (f *prepullFlags) print(s *State, list []wire.Image) error {
	if f.asJSON {
		return PrintJSON(s, prepullOutput{"tracesmith.tasks.prepull/1", append([]wire.Image{}, list...)})
	}
	if len(list) == 0 {
		fmt.Fprintln(s.Stdout, "no task runs in an image")
		return nil
	}
	w := newTable(s.Stdout, "IMAGE\tSTATUS\tTASKS\tSECONDS")
	counts := map[string]int{}
	for _, i := range list {
		counts[i.Status]++
		fmt.Fprintf(w, "%s\t%s\t%d\t%.1f\n", i.Name, i.Status, i.Tasks, i.Seconds)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	var parts []string
	for _, status := range []string{wire.ImagePresent, wire.ImagePulled, wire.ImageFailed, wire.ImageSkipped} {
		if counts[status] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[status], status))
		}
	}
	fmt.Fprintln(s.Stdout, strings.Join(parts, ", "))
	return nil
}

// pullProgress prints a line for each image and, on a terminal, a line of progress that it
// redraws.
type pullProgress struct {
	liveLine
	total, finished, running int   // images
	have, known              int64 // bytes pulled, and the size of the layers that the daemon has reported so far
}

func (p *pullProgress) started(wire.Image) {
	p.running++
	p.draw()
}

func (p *pullProgress) bytes(have, total int64) {
	p.have, p.known = have, total
	p.draw()
}

func (p *pullProgress) done(i wire.Image) {
	p.running--
	p.finished++
	p.erase()
	line := fmt.Sprintf("  [%d/%d] %-6s %s", p.finished, p.total, i.Status, i.Name)
	if i.Reason != "" {
		line += ": " + clip(i.Reason, 200)
	}
	fmt.Fprintln(p.w, line)
	p.draw()
}

func (p *pullProgress) draw() {
	p.show("  %d/%d images, %d running, %d of %d MB", p.finished, p.total, p.running, p.have>>20, p.known>>20)
}
