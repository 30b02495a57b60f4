package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
)

type filterFlags struct {
	dataFlags
	exprs   []string
	recipe  string
	out     string
	dryRun  bool
	reasons bool
	asJSON  bool
	marks   string
}

func newFilter(s *State) *cobra.Command {
	var f filterFlags
	c := &cobra.Command{
		Use: "filter DATASET-or-RUN", Short: "Select episodes by predicates, and show why others are left out",
		Long: "Apply predicates to every episode and write a selection file, which publish and\n" +
			"export accept. A predicate is a CEL expression over the columns, or a named\n" +
			"predicate; docs/filter.md describes both. Expressions of -e apply after those of\n" +
			"--recipe. Without either, the recipe is " + selection.Default + ".",
		Example: "  tracesmith filter runs/a --dry-run\n" +
			"  tracesmith filter runs/a -e 'resolved && n_turns <= 20' \\\n    -e 'uses_debugger(2)' -o picked.jsonl\n" +
			"  tracesmith export sft-trl runs/a --selection picked.jsonl -o train.jsonl.gz",
		Args: RangeArgs(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			f.dryRun = f.dryRun || f.out == ""
			recipe, err := f.load()
			if err != nil {
				return Usage(err)
			}
			data, err := f.open(c, s, args[0])
			if err != nil {
				return err
			}
			defer func() { _ = data.Close() }()
			if err := f.requireMarks(data, recipe); err != nil {
				return Usage(err)
			}
			return f.filter(c.Context(), s, data, recipe)
		},
	}
	f.Add(c)
	fl := c.Flags()
	fl.StringArrayVarP(&f.exprs, "expr", "e", nil, "predicate, such as 'n_turns <= 20'; may be repeated, all must hold")
	fl.StringVar(&f.recipe, "recipe", "", "recipe: "+strings.Join(selection.Builtin(), ", ")+", or a file")
	fl.StringVarP(&f.out, "output", "o", "", "selection file to write (default: none, as with --dry-run)")
	fl.BoolVar(&f.dryRun, "dry-run", false, "show what would be kept and write nothing")
	fl.BoolVar(&f.reasons, "reasons", false, "list every episode that is left out, with all reasons")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	fl.StringVar(&f.marks, "marks", "", "apply the marks that were set in tracesmith view: "+marksKept+" or "+marksUnrejected)
	Must(c.RegisterFlagCompletionFunc("marks", OneOf(marksKept, marksUnrejected)))
	Must(c.RegisterFlagCompletionFunc("recipe", orFile(selection.Builtin()...)))
	return c
}

func (f *filterFlags) load() (*selection.Recipe, error) {
	switch {
	case f.recipe == "" && len(f.exprs) > 0:
		return selection.FromExpr(f.exprs...)
	case f.recipe == "":
		f.recipe = selection.Default
	}
	r, err := selection.LoadRecipe(f.recipe)
	if err != nil || len(f.exprs) == 0 {
		return r, err
	}
	return r, r.Require(f.exprs...)
}

// Values of --marks.
const (
	marksKept       = "kept"       // only episodes that are marked keep
	marksUnrejected = "unrejected" // all but those that are marked reject
)

// requireMarks adds the marks of the place to the recipe, as a predicate over the ids. The selection
// file then says which episodes a reader chose.
func (f *filterFlags) requireMarks(data *wire.Data, recipe *selection.Recipe) error {
	mark, name, format := wire.MarkKeep, "marked_keep", "episode_id in %s"
	switch f.marks {
	case "":
		return nil
	case marksKept:
	case marksUnrejected:
		mark, name, format = wire.MarkReject, "not_marked_reject", "!(episode_id in %s)"
	default:
		return fmt.Errorf("--marks %s: choose %s or %s", f.marks, marksKept, marksUnrejected)
	}
	marks, err := data.Marks()
	if err != nil {
		return err
	}
	if len(marks) == 0 {
		return fmt.Errorf("--marks %s: no episode of %s is marked: mark some in tracesmith view", f.marks, data.Place)
	}
	ids := []string{}
	for id, m := range marks {
		if m.Mark == mark {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	list, err := schemas.CanonicalJSON(ids)
	if err != nil {
		return err
	}
	return recipe.RequirePredicate(selection.Predicate{Name: name, Expr: fmt.Sprintf(format, list)})
}

// filterOutput is what filter --json prints.
type filterOutput struct {
	Schema  string                 `json:"schema"`
	Output  string                 `json:"output,omitempty"` // path of the selection file; "" with --dry-run
	Header  selection.Header       `json:"selection"`
	Reasons map[string]int         `json:"first_reasons"` // number of episodes that are left out, by their first reason
	Rows    []schemas.SelectionRow `json:"episodes"`
}

func (f *filterFlags) filter(ctx context.Context, s *State, data *wire.Data, recipe *selection.Recipe) error {
	if !f.dryRun {
		if _, err := os.Lstat(f.out); err == nil {
			return Usage(fmt.Errorf("%s exists: choose another -o", f.out))
		}
	}
	if f.dryRun {
		data.SkipDamaged()
	}
	runs := map[string]bool{}
	result, err := recipe.Apply(ctx, data.EpisodesOf(runs))
	if err != nil {
		return Usage(err)
	}
	h := selection.NewHeader(recipe, result)
	h.Dataset, h.Version, h.Runs = data.Identity(runs)
	if !f.dryRun {
		if err := f.write(h, result.Rows); err != nil {
			return err
		}
	}
	if f.asJSON {
		out := filterOutput{Schema: "tracesmith.filter/1", Header: h, Reasons: result.Reasons(), Rows: result.Rows}
		if !f.dryRun {
			out.Output = f.out
		}
		return cmp.Or(PrintJSON(s, out), reportDamage(s, data, "the counts are incomplete"))
	}
	printFunnel(s.Stdout, result)
	if f.reasons {
		fmt.Fprintln(s.Stdout)
		if err := printReasons(ctx, s.Stdout, data, result); err != nil {
			return err
		}
	}
	if f.dryRun {
		fmt.Fprintln(s.Stderr, "nothing was written: name a selection file with -o, and leave out --dry-run")
		return reportDamage(s, data, "the counts are incomplete")
	}
	printWarnings(s, data)
	fmt.Fprintf(s.Stdout, "\n%s: %d of %d episodes\n", f.out, len(result.Kept), len(result.Rows))
	if len(result.Kept) > 0 {
		fmt.Fprintf(s.Stdout, "\nNext:\n  %s\n", shell("tracesmith", "export", "sft-trl", data.Place, "--selection", f.out, "-o", "train.jsonl.gz"))
	}
	return nil
}

// write creates the selection file. If it fails, it leaves no partial file.
func (f *filterFlags) write(h selection.Header, rows []schemas.SelectionRow) error {
	tmp, err := os.CreateTemp(filepath.Dir(f.out), "."+filepath.Base(f.out)+"-")
	if err != nil {
		return Usage(creating(f.out, err))
	}
	defer os.Remove(tmp.Name())
	err = errors.Join(selection.Write(tmp, h, rows), tmp.Chmod(0o644), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Link(tmp.Name(), f.out) // fails if the file exists meanwhile
	}
	if errors.Is(err, os.ErrExist) {
		return Usage(fmt.Errorf("%s exists: choose another -o", f.out))
	}
	if err != nil {
		return Usage(fmt.Errorf("writing the selection file: %w", err))
	}
	return nil
}

// goldNote tells, as the end of a sentence, how many kept episodes used the gold patch, so
// that they are not successes of an agent; "" if n is 0.
func goldNote(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of them with the gold patch", n)
}

// printFunnel prints how many episodes each predicate keeps and drops, in the order of the
// recipe, and then the predicates that only count.
func printFunnel(w io.Writer, r selection.Result) {
	fmt.Fprintf(w, "selection %s: %d of %d episodes kept%s\n\n", r.Info.Name, len(r.Kept), len(r.Rows), goldNote(r.Info.KeptGold))
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	line := func(cells ...any) { fmt.Fprintf(t, "%v\t%v\t%v\t%v\t  %s\n", cells...) }
	line("in", "kept", "dropped", "unknown", "predicate")
	for _, p := range r.Funnel {
		line(p.In, p.Out, p.In-p.Out, p.Unknown, stepName(p))
	}
	_ = t.Flush()
	if len(r.Info.Reports) == 0 {
		return
	}
	fmt.Fprintf(w, "\ncounted over the kept episodes (%d), not applied\n", len(r.Kept))
	t = tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	line("of", "yes", "no", "unknown", "predicate")
	for _, p := range r.Info.Reports {
		line(p.In, p.Out, p.In-p.Out-p.Unknown, p.Unknown, stepName(p))
	}
	_ = t.Flush()
}

// stepName returns a predicate's name and its expression, shortened, on one line.
func stepName(p schemas.FunnelStep) string {
	expr := []rune(strings.Join(strings.Fields(p.Expr), " "))
	if len(expr) > 100 {
		expr = append(expr[:99:99], '…')
	}
	if string(expr) == p.Predicate {
		return p.Predicate
	}
	return p.Predicate + "   " + string(expr)
}

// printReasons lists the episodes that are left out, with all reasons.
func printReasons(ctx context.Context, w io.Writer, data *wire.Data, r selection.Result) error {
	if len(r.Kept) == len(r.Rows) {
		fmt.Fprintln(w, "no episode is left out")
		return nil
	}
	names := map[string]string{}
	for e, err := range data.Episodes(ctx, false) {
		if err != nil {
			return Usage(err)
		}
		names[e.Row.EpisodeID] = taskText(&e.Row)
	}
	t := newTable(w, "TASK\tEPISODE\tREASONS")
	for _, row := range r.Rows {
		if !row.Kept {
			fmt.Fprintf(t, "%s\t%s\t%s\n", names[row.EpisodeID], row.EpisodeID, strings.Join(row.Reasons, ", "))
		}
	}
	return t.Flush()
}
