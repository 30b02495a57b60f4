package cli

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/tracesmith/internal/wire"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

type exportFlags struct {
	dataFlags
	out       string
	selection string
	all       bool
	force     bool
	options   sinks.ViewOptions
}

func newExport(s *State) *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use: "export VIEW DATASET-or-RUN", Short: "Render episodes for a trainer: " + strings.Join(sinks.Views.Kinds(), ", "),
		Long: "Render the selected episodes as one view and write a lint report beside it.\n" +
			"Steps that come from a gold patch are never exported without --allow-gold.",
		Example: "  tracesmith export sft-trl out/quickstart/dataset -o train.jsonl.gz",
		Args:    exactArgs(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			view, err := sinks.Views.Build(args[0], nil, f.options)
			if err != nil {
				return Usage(err)
			}
			data, err := f.open(c, s, args[1])
			if err != nil {
				return err
			}
			defer func() { _ = data.Close() }()
			return f.export(c.Context(), s, view, data)
		},
	}
	f.add(c)
	fl := c.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "file to write (default: VIEW in this directory)")
	fl.StringVar(&f.selection, "selection", "success-v1", "which episodes: a built-in recipe, a recipe's file, or a file that filter has written")
	fl.BoolVar(&f.all, "all", false, "every episode, whatever became of it")
	fl.BoolVar(&f.force, "force", false, "overwrite the output file")
	fl.StringVar(&f.options.Mask, "mask", sinks.MaskContext, "turns that must not be trained on: "+strings.Join(sinks.Masks, ", "))
	fl.StringVar(&f.options.Phase, "phase", "", "of episodes with more than one conversation only this one: seek, solve")
	registerExport(c)
	fl.BoolVar(&f.options.AllowGold, "allow-gold", false, "export steps that come from gold patches, too")
	return c
}

// lint is the report beside an export.
type lint struct {
	Schema    string         `json:"schema"`
	Source    string         `json:"source"`
	Selection string         `json:"selection"`
	Read      int            `json:"episodes_read"`
	Selected  int            `json:"episodes_selected"`
	Exported  int            `json:"episodes_exported"`
	Rows      int            `json:"rows"`
	Notes     map[string]int `json:"notes"`

	check  *redact.Checker
	held   error    // of the last episode that still holds a secret
	phases []string // conversations of the selected episodes
}

func (f *exportFlags) export(ctx context.Context, s *State, view sinks.View, data *wire.Data) error {
	keep, rep, err := f.selected(ctx, s, data)
	if err != nil {
		return err
	}
	if f.out == "" {
		f.out = "export" + view.Extension()
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if f.force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(f.out, flags, 0o644)
	if errors.Is(err, os.ErrExist) {
		return Usage(fmt.Errorf("%s exists: choose another -o, or say --force to overwrite it", f.out))
	}
	if err != nil {
		return Usage(fmt.Errorf("creating the output: %w", err))
	}
	err = f.render(ctx, file, view, data, keep, &rep)
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err == nil && rep.Rows == 0 {
		err = f.nothing(rep)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.out))
	}
	report, err := schemas.CanonicalJSON(rep)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.out+".lint.json", append(report, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the lint report: %w", err)
	}
	fmt.Fprintf(s.Stdout, "%s: %d rows from %d of %d episodes (selection %s)\n", f.out, rep.Rows, rep.Exported, rep.Read, rep.Selection)
	for _, note := range slices.Sorted(maps.Keys(rep.Notes)) {
		fmt.Fprintf(s.Stdout, "  %-24s %d\n", note, rep.Notes[note])
	}
	return nil
}

// selected applies the selection to all episodes but those that still hold a secret.
func (f *exportFlags) selected(ctx context.Context, s *State, data *wire.Data) (map[string]bool, lint, error) {
	rep := lint{Schema: "tracesmith.lint/1", Source: filepath.Base(data.Place), Selection: f.selection, Notes: map[string]int{}}
	rep.check = redact.NewChecker(redact.Environment(s.Environ))
	keep := map[string]bool{}
	if f.all {
		rep.Selection = "all"
		for e, err := range data.Episodes(ctx, false) {
			if err != nil {
				return nil, rep, Usage(err)
			}
			rep.Read++
			keep[e.Row.EpisodeID] = true
		}
	} else {
		chosen, err := selection.Load(f.selection)
		if err != nil {
			return nil, rep, Usage(err)
		}
		result, err := chosen.Apply(ctx, data.Episodes)
		if err != nil {
			return nil, rep, Usage(err)
		}
		rep.Read, rep.Selection = len(result.Rows), result.Info.Name
		for _, id := range result.Kept {
			keep[id] = true
		}
	}
	rep.Selected = len(keep)
	if len(keep) == 0 {
		return nil, rep, &Error{Code: ExitUsage, Try: shell("tracesmith", "stats", data.Place), Err: fmt.Errorf("selection %s keeps none of %d episodes", rep.Selection, rep.Read)}
	}
	return keep, rep, nil
}

// nothing says why there are no rows.
func (f *exportFlags) nothing(rep lint) error {
	if rep.held != nil {
		return Usage(fmt.Errorf("no row: %d of %d selected episodes are held back: %w", rep.Notes["held back: a secret"], rep.Selected, rep.held))
	}
	why := "they have no turns"
	var notes []string
	for _, note := range slices.Sorted(maps.Keys(rep.Notes)) {
		notes = append(notes, fmt.Sprintf("%s %d", note, rep.Notes[note]))
	}
	switch phase := f.options.Phase; {
	case phase != "" && len(rep.phases) == 0:
		why = "none holds more than one conversation: leave out --phase"
	case phase != "" && !slices.Contains(rep.phases, phase):
		why = fmt.Sprintf("none has a conversation %q: choose %s", phase, strings.Join(rep.phases, " or "))
	case len(notes) > 0:
		why = strings.Join(notes, ", ")
	}
	return &Error{Code: ExitUsage, Err: fmt.Errorf("no row of %d selected episodes: %s", rep.Selected, why)}
}

func (f *exportFlags) render(ctx context.Context, w io.Writer, view sinks.View, data *wire.Data, keep map[string]bool, rep *lint) error {
	zip := gzip.NewWriter(w) // no name and no time in its header: equal input, equal bytes
	for t, err := range data.Trajectories(ctx) {
		if err != nil {
			return Usage(err)
		}
		if !keep[t.Episode.EpisodeID] {
			continue
		}
		for _, s := range t.Steps {
			if s.Phase != nil && !slices.Contains(rep.phases, *s.Phase) {
				rep.phases = append(rep.phases, *s.Phase)
			}
		}
		if err := rep.check.Check("episode "+t.Episode.EpisodeID, t); err != nil {
			rep.Notes["held back: a secret"]++
			rep.held = err
			continue
		}
		rows, notes, err := view.Render(t)
		if err != nil {
			return fmt.Errorf("rendering episode %s: %w", t.Episode.EpisodeID, err)
		}
		for k, n := range notes {
			rep.Notes[k] += n
		}
		if len(rows) > 0 {
			rep.Exported++
		}
		for _, row := range rows {
			line, err := schemas.CanonicalJSON(row)
			if err != nil {
				return err
			}
			if _, err := zip.Write(append(line, '\n')); err != nil {
				return fmt.Errorf("writing rows: %w", err)
			}
			rep.Rows++
		}
	}
	if err := zip.Close(); err != nil {
		return fmt.Errorf("writing rows: %w", err)
	}
	return nil
}
