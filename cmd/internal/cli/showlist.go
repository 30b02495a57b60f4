package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
)

// listFlags choose the episodes and columns of a list.
type listFlags struct {
	exprs, sort, columns []string
	limit                int
}

// Add defines the flags.
func (f *listFlags) Add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringArrayVarP(&f.exprs, "expr", "e", nil, "list only episodes for which this holds, such as 'n_turns <= 20' (see filter); may be repeated")
	fl.StringSliceVar(&f.sort, "sort", []string{"task"}, "list in the order of these columns; -COLUMN is descending")
	fl.IntVar(&f.limit, "limit", 0, "list only the first N episodes; 0 is all")
	fl.StringSliceVar(&f.columns, "columns", nil, "list these columns of table episodes, or "+strings.Join(shortNames(), ", "))
	for _, flag := range []string{"sort", "columns"} {
		Must(c.RegisterFlagCompletionFunc(flag, OneOf(append(shortNames(), episodeColumns()...)...)))
	}
}

func shortNames() []string {
	var names []string
	for _, c := range shortColumns {
		names = append(names, c.name)
	}
	return names
}

// listed is an episode of a list: only what the list needs of its row.
type listed struct {
	id    string
	sort  []any
	row   *schemas.EpisodeRow // for --json
	cells []cell
	empty []bool // by column
}

// episodeList is what show prints of a place.
type episodeList struct {
	columns  []listColumn
	episodes []*listed
	total    int // episodes of the place
	matched  int // episodes for which the expressions hold; more than episodes with --limit
	unknown  int // episodes left out because a column that decides is null
}

// load reads the episodes that the flags choose.
func (f *listFlags) load(ctx context.Context, data *wire.Data, asJSON bool) (*episodeList, error) {
	names := f.columns
	if names == nil {
		names = defaultColumns
	}
	columns, err := newListColumns("columns", names)
	if err != nil {
		return nil, Usage(err)
	}
	keys, err := newSortKeys(f.sort)
	if err != nil {
		return nil, Usage(err)
	}
	if f.limit < 0 {
		return nil, Usage(fmt.Errorf("--limit %d: want 0 for all, or more", f.limit))
	}
	l := &episodeList{columns: columns}
	if err := f.filter(ctx, data, l, func(e *schemas.EpisodeRow) *listed { return newListed(e, columns, keys, asJSON) }); err != nil {
		return nil, Usage(err)
	}
	slices.SortStableFunc(l.episodes, func(a, b *listed) int {
		return cmp.Or(compareKeys(keys, a.sort, b.sort), strings.Compare(a.id, b.id))
	})
	l.matched = len(l.episodes)
	if f.limit > 0 {
		l.episodes = l.episodes[:min(f.limit, len(l.episodes))]
	}
	if f.columns == nil && !asJSON {
		l.dropEmpty()
	}
	return l, nil
}

// filter adds the episodes to l for which the expressions hold.
func (f *listFlags) filter(ctx context.Context, data *wire.Data, l *episodeList, add func(*schemas.EpisodeRow) *listed) error {
	if len(f.exprs) == 0 {
		for e, err := range data.Episodes(ctx, false) {
			if err != nil {
				return err
			}
			l.episodes = append(l.episodes, add(&e.Row))
		}
		l.total = len(l.episodes)
		return nil
	}
	recipe, err := selection.FromExpr(f.exprs...)
	if err != nil {
		return err
	}
	all := map[string]*listed{}
	result, err := recipe.Apply(ctx, func(ctx context.Context, steps bool) iter.Seq2[selection.Episode, error] {
		return func(yield func(selection.Episode, error) bool) {
			for e, err := range data.Episodes(ctx, steps) {
				if err == nil {
					all[e.Row.EpisodeID] = add(&e.Row)
				}
				if !yield(e, err) {
					return
				}
			}
		}
	})
	if err != nil {
		return err
	}
	for _, id := range result.Kept {
		l.episodes = append(l.episodes, all[id])
	}
	for _, step := range result.Funnel {
		l.unknown += step.Unknown
	}
	l.total = len(result.Rows)
	return nil
}

func newListed(e *schemas.EpisodeRow, columns []listColumn, keys []sortKey, asJSON bool) *listed {
	out := &listed{id: e.EpisodeID}
	for _, k := range keys {
		out.sort = append(out.sort, k.column.order(e))
	}
	if asJSON {
		row := *e
		out.row = &row
		return out
	}
	for _, c := range columns {
		v := c.value(e)
		shown := cell{text: c.text(e), number: isNumber(v)}
		if c.color != nil {
			shown.color = c.color(e)
		}
		out.cells, out.empty = append(out.cells, shown), append(out.empty, empty(v))
	}
	return out
}

// dropEmpty removes columns without a value, and agent if there are models and only one agent.
func (l *episodeList) dropEmpty() {
	var keep []int
	hasModel := false
	for i, c := range l.columns {
		agents, known := map[string]bool{}, len(l.episodes) == 0
		for _, e := range l.episodes {
			known = known || !e.empty[i]
			agents[e.cells[i].text] = true
		}
		hasModel = hasModel || c.name == "model" && known
		if known && !(c.name == "agent" && hasModel && len(agents) == 1) {
			keep = append(keep, i)
		}
	}
	columns := l.columns
	l.columns = nil
	for _, i := range keep {
		l.columns = append(l.columns, columns[i])
	}
	for _, e := range l.episodes {
		var cells []cell
		for _, i := range keep {
			cells = append(cells, e.cells[i])
		}
		e.cells = cells
	}
}

// list lists episodes, then the jobs without an episode and the unfinished episodes.
func (f *showFlags) list(ctx context.Context, s *State, data *wire.Data) error {
	l, err := f.load(ctx, data, f.asJSON)
	if err != nil {
		return err
	}
	if damaged := data.Damaged(); l.total == 0 && len(damaged) > 0 {
		return Usage(damaged[0].Err)
	}
	dead, err := data.DeadLetters(ctx)
	if err != nil {
		return Usage(err)
	}
	if f.asJSON {
		err = f.listJSON(s, data, l, dead)
	} else {
		err = f.print(s, func(w *screen) {
			l.print(w)
			printDead(w, data, dead)
		})
	}
	if err != nil {
		return err
	}
	l.printNotes(s.Stderr)
	unfinished, err := data.Unfinished(ctx)
	printUnfinished(s.Stderr, slices.DeleteFunc(unfinished, func(u wire.Unfinished) bool { return u.Dead }))
	return cmp.Or(err, reportDamage(s, data, "the list is incomplete"))
}

// maxUnfinished is the number of unfinished episodes that a list names.
const maxUnfinished = 5

func printUnfinished(w io.Writer, unfinished []wire.Unfinished) {
	for _, u := range unfinished[:min(len(unfinished), maxUnfinished)] {
		fmt.Fprintf(w, "%s  %s  not finished: repeat the run command to continue it\n", u.ID[:min(12, len(u.ID))], u.Instance)
	}
	if more := len(unfinished) - maxUnfinished; more > 0 {
		fmt.Fprintf(w, "and %d more that are not finished\n", more)
	}
}

func (l *episodeList) print(w *screen) {
	titles := []string{}
	for _, c := range l.columns {
		titles = append(titles, strings.ToUpper(c.name))
	}
	rows := [][]cell{}
	for _, e := range l.episodes {
		rows = append(rows, slices.Clone(e.cells))
		for i, c := range e.cells {
			rows[len(rows)-1][i].text = w.safe(c.text)
		}
	}
	w.table(titles, rows)
}

// printNotes says what is not in the list.
func (l *episodeList) printNotes(w io.Writer) {
	text := fmt.Sprintf("%d of %s", len(l.episodes), count(l.total, "episode"))
	if l.matched < l.total && len(l.episodes) < l.matched {
		text = fmt.Sprintf("%d of %d matches, %s", len(l.episodes), l.matched, count(l.total, "episode"))
	}
	if l.unknown > 0 {
		text += fmt.Sprintf("; %d of the others have no value to compare", l.unknown)
	}
	if len(l.episodes) < l.total {
		fmt.Fprintln(w, text)
	}
}

// listJSON prints whole rows, or with --columns only the values of these columns.
func (f *showFlags) listJSON(s *State, data *wire.Data, l *episodeList, dead []wire.DeadLetter) error {
	rows, deadRows := []any{}, []schemas.DeadLetterRow{}
	for _, e := range l.episodes {
		if f.columns == nil {
			rows = append(rows, e.row)
			continue
		}
		row := map[string]any{}
		for _, c := range l.columns {
			row[c.name] = c.value(e.row)
		}
		rows = append(rows, row)
	}
	for _, d := range dead {
		deadRows = append(deadRows, d.DeadLetterRow)
	}
	return PrintJSON(s, struct {
		Schema   string                  `json:"schema"`
		Episodes []any                   `json:"episodes"`
		Dead     []schemas.DeadLetterRow `json:"dead_letters"`
		LeftOut  []publish.LeftOut       `json:"left_out,omitempty"` // damaged files
	}{"tracesmith.episodes/1", rows, deadRows, data.Damaged()})
}

// printDead counts the jobs that ended without an episode, and lists the first ones.
func printDead(w *screen, data *wire.Data, dead []wire.DeadLetter) {
	tally := publish.NewTally()
	for _, d := range dead {
		tally.AddDead([]schemas.DeadLetterRow{d.DeadLetterRow})
	}
	if len(dead) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s without an episode: %s\n", count(len(dead), "job"), tally.Stats().NoEpisode())
	for _, d := range dead[:min(len(dead), 20)] {
		fmt.Fprintf(w, "  %s  %s  %s\n", d.UnitKey[:min(12, len(d.UnitKey))], cmp.Or(d.Instance, "task "+clip(schemas.Value(d.InputRef), 12)), w.safe(deadReason(d)))
	}
	fmt.Fprintf(w, "  all of them: %s\n", data.DeadLettersPath())
}

// deadReason says on one line why a job has no episode.
func deadReason(d wire.DeadLetter) string {
	return fmt.Sprintf("%s after %s: %s", schemas.Value(d.ErrorClass), count(int(d.Attempts), "attempt"), firstLine(schemas.Value(d.ErrorMessage)))
}

func printWarnings(s *State, data *wire.Data) {
	for _, text := range data.Warnings() {
		fmt.Fprintf(s.Stderr, "warning: %s\n", text)
	}
}

// reportDamage names the files that were left out of what a command printed, and returns the error with
// which the command ends; nil if there are none. effect says what that means.
func reportDamage(s *State, data *wire.Data, effect string) error {
	printWarnings(s, data)
	damaged := data.Damaged()
	if len(damaged) == 0 {
		return nil
	}
	for _, d := range damaged {
		fmt.Fprintf(s.Stderr, "warning: %v; %s of table %s left out\n", d.Err, count(int(d.Rows), "row"), d.Table)
	}
	return &Error{Code: ExitIncomplete, Try: shell("tracesmith", "verify", data.Place), Err: fmt.Errorf("%s of %s cannot be read: %s", count(len(damaged), "file"), data.Place, effect)}
}
