package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

type exportFlags struct {
	dataFlags
	view      string
	out       string
	container string
	selection string
	all       bool
	splits    []string
	force     bool
	maxTokens int
	tokenizer string
	settings  []string
	options   sinks.ViewOptions
}

func newExport(s *State) *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use: "export VIEW DATASET-or-RUN", Short: "Render episodes for a trainer or another tool",
		Long: "Render the selected episodes as one view, and write a lint report next to the\n" +
			"output. Without --split, export writes only the train split; without\n" +
			"--allow-gold, it writes no step that comes from a gold patch.\n\nViews:\n" + viewList(),
		Example: "  tracesmith export sft-trl out/quickstart/dataset -o train.jsonl.gz\n" +
			"  tracesmith export sft-text out/quickstart/dataset --with template=llama3 \\\n    -o train.parquet\n" +
			"  tracesmith export sft-trl out/quickstart/dataset --split validation,test \\\n    -o held-out.jsonl.gz\n" +
			"  tracesmith export atif out/quickstart/dataset -o trajectories",
		Args: RangeArgs(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			f.view = args[0]
			if f.all && c.Flags().Changed("selection") {
				return Usage(errors.New("--all takes every episode, --selection some: leave one of them out"))
			}
			if reason := impossibleViews[f.view]; reason != "" {
				return Usage(fmt.Errorf("%s: %s", f.view, reason))
			}
			if err := f.checkSplits(); err != nil {
				return Usage(err)
			}
			view, err := f.build()
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
	f.Add(c)
	fl := c.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "file or directory to write (default: export in the current directory)")
	fl.StringVar(&f.container, "container", "", "format of the rows: "+strings.Join(sinks.Containers, ", ")+" (default: by the name of the output, else the view's own)")
	fl.StringVar(&f.selection, "selection", "", "episodes to export: a built-in recipe, a recipe file, or a file that filter wrote (default: the selection that the dataset was published with; for a run, "+selection.Default+")")
	fl.BoolVar(&f.all, "all", false, "export every episode, whatever its outcome")
	fl.StringSliceVar(&f.splits, "split", []string{trainSplit}, "splits to export, separated by commas: "+strings.Join(append(slices.Clone(schemas.Splits), allSplits), ", "))
	fl.BoolVar(&f.force, "force", false, "overwrite the output")
	fl.StringVar(&f.options.Mask, "mask", "", "how to mark turns that must not be trained on: "+
		strings.Join(sinks.Masks, ", ")+" (default: depends on the view, see docs/reference/views.md)")
	fl.StringVar(&f.options.Phase, "phase", "",
		"of episodes with several conversations, export only this one: seek, solve")
	fl.StringVar(&f.options.Arguments, "arguments", "", "how to write arguments of calls: object, string")
	fl.StringVar(&f.options.Thinking, "thinking", "", "how to write thoughts of replies: field, inline, drop")
	fl.StringVar(&f.options.ChatTemplate, "chat-template", "", "set enable_thinking in each row "+
		"(TRL: in chat_template_kwargs; verl: a column) for this chat template, named as in TRL, such as qwen3_training")
	fl.StringVar(&f.options.Tools, "tools", "", "how to write tool definitions: list, json-string")
	fl.StringVar(&f.options.ContentNull, "content-null", "", "content of replies that only make calls: empty (\"\"), omit (no such key)")
	fl.StringVar(&f.options.System, "system", "", "system prompt: keep, drop, replace:FILE")
	fl.StringVar(&f.options.Trim, "trim", "", "turns to leave out: none, after-resolved (those after the turn that resolved the task)")
	fl.IntVar(&f.maxTokens, "max-tokens", 0, "leave out rows with more tokens than this")
	fl.StringVar(&f.tokenizer, "tokenizer", "o200k_base", "vocabulary to count tokens with: "+strings.Join(wire.Vocabularies(), ", "))
	fl.StringArrayVar(&f.settings, "with", nil, "setting of the view, as key=value; may be repeated")
	addExportCompletions(c)
	fl.BoolVar(&f.options.AllowGold, "allow-gold", false, "also export steps that come from gold patches")
	return c
}

// impossibleViews explains why some views that users might expect do not exist.
var impossibleViews = map[string]string{
	"skyrl-tokens": "it needs the ids of the sampled tokens, which tracesmith does not record. " +
		"SkyRL also reads text: export sft-openai, and set messages_key to messages",
}

func viewList() string {
	var rows [][2]string
	for _, kind := range sinks.Views.Kinds() {
		spec, _ := sinks.Views.Lookup(kind)
		rows = append(rows, [2]string{kind, spec.Summary})
	}
	return strings.TrimSuffix(table(rows), "\n")
}

// build makes the view from the flags. It completes f.options.
func (f *exportFlags) build() (sinks.View, error) {
	if f.maxTokens < 0 {
		return nil, fmt.Errorf("--max-tokens %d: want a number above 0, or leave it out", f.maxTokens)
	}
	count, err := wire.TokenCounter(f.tokenizer)
	if err != nil {
		return nil, fmt.Errorf("--tokenizer: %w", err)
	}
	f.options.Count = count
	if file, ok := strings.CutPrefix(f.options.System, "replace:"); ok {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--system: %w", err)
		}
		f.options.System, f.options.SystemText = sinks.SystemReplace, strings.TrimSuffix(string(body), "\n")
	} else if f.options.System == sinks.SystemReplace {
		return nil, errors.New("--system replace: name the file with the prompt, as replace:FILE")
	}
	if f.container != "" && !slices.Contains(sinks.Containers, f.container) {
		return nil, fmt.Errorf("container %q: choose one of %s", f.container, strings.Join(sinks.Containers, ", "))
	}
	settings, err := parseSettings(f.settings)
	if err != nil {
		return nil, err
	}
	return sinks.Views.Build(f.view, settings, f.options)
}

func (f *exportFlags) export(ctx context.Context, s *State, view sinks.View, data *wire.Data) error {
	keep, rep, err := f.selected(ctx, s, data)
	if err != nil {
		return err
	}
	rep.Container = cmp.Or(f.container, containerOf(f.out), view.Container())
	if own := view.Container(); own == sinks.Dir && rep.Container != sinks.Dir {
		return Usage(fmt.Errorf("%s writes a directory with a file per episode: leave out --container, and name a directory with -o", f.view))
	}
	if ext := filepath.Ext(f.out); ext != "" && rep.Container != sinks.Dir && f.container == "" && !strings.HasSuffix("."+rep.Container, ext) {
		return Usage(fmt.Errorf("-o %s: there is no container %s, and the rows would be %s: end the name in one of .%s, or set --container", f.out, ext, rep.Container, strings.Join(sinks.Containers, ", .")))
	}
	if f.options.ContentNull == sinks.ContentOmit && rep.Container == sinks.Parquet {
		return Usage(errors.New("--content-null omit: every row of a Parquet file has every column: choose --container " + sinks.JSONL))
	}
	if f.out == "" {
		f.out = "export"
		if rep.Container != sinks.Dir {
			f.out += "." + rep.Container
		}
	}
	f.out = filepath.Clean(f.out) // "traces/" becomes "traces": the report is then next to the directory, not in it
	out, err := createOutput(f.out, rep.Container, f.force)
	if err != nil {
		return err
	}
	err = f.render(ctx, out, view, data, keep, &rep)
	if cerr := out.close(); err == nil {
		err = cerr
	}
	rep.countWithoutRows()
	if err == nil && rep.Rows == 0 {
		err = f.noRows(rep)
	}
	if errors.Is(err, wire.ErrNoColumns) {
		err = Usage(fmt.Errorf("%s has no Parquet form: choose --container %s", f.view, view.Container()))
	}
	if missing, ok := errors.AsType[*sinks.MissingError](err); ok {
		err = Usage(fmt.Errorf("%s: %w", f.view, missing))
	}
	if err == nil {
		err = out.keep()
	}
	if err != nil {
		return errors.Join(err, out.drop())
	}
	if v, ok := view.(sinks.Sidecar); ok {
		suffix, body, err := v.Sidecar(filepath.Base(f.out))
		if err == nil {
			err = os.WriteFile(f.out+suffix, body, 0o644)
		}
		if err != nil {
			return fmt.Errorf("writing %s: %w", f.out+suffix, err)
		}
	}
	if err := rep.write(f.out + lintSuffix); err != nil {
		return err
	}
	printWarnings(s, data)
	f.printResult(s, rep)
	return nil
}

// printResult says what was written and what was not.
func (f *exportFlags) printResult(s *State, rep lint) {
	format := ""
	if rep.Container != sinks.Dir && containerOf(f.out) == "" { // the name does not say it
		format = " (" + rep.Container + ")"
	}
	fmt.Fprintf(s.Stdout, "%s%s: %s from %d of %s (selection %s, %s)\n",
		f.out, format, count(rep.Rows, "row"), rep.Exported, count(rep.Read, "episode"), rep.Selection, f.splitsText())
	fmt.Fprintf(s.Stdout, "  tokens: %d trained, %d masked, %d context (%s, without a chat template)\n",
		rep.Tokens.Trained, rep.Tokens.Masked, rep.Tokens.Context, rep.Tokens.Tokenizer)
	if note := rep.overLimit(); note != "" {
		fmt.Fprintf(s.Stdout, "  %s\n", note)
	}
	if note := rep.otherSplits(); note != "" {
		fmt.Fprintf(s.Stderr, "left out %s: name them with --split to write them\n", note)
	}
	for _, line := range rep.counts() {
		name, n, _ := strings.Cut(line, " ")
		fmt.Fprintf(s.Stdout, "  %-24s %s\n", name, n)
	}
	if rep.Dropped["turns_cut_gold"] > 0 {
		fmt.Fprintln(s.Stdout, "  rows end before the edit that comes from a gold patch; --allow-gold keeps it")
	}
}

// selected returns the ids of the selected episodes and the report with its first counts.
func (f *exportFlags) selected(ctx context.Context, s *State, data *wire.Data) (map[string]bool, lint, error) {
	settings, _ := parseSettings(f.settings) // build has checked them
	rep := lint{
		Schema: lintSchema, View: f.view, Source: filepath.Base(data.Place), Selection: f.selection,
		Tokens: lintTokens{Tokenizer: f.tokenizer}, Dropped: map[string]int{}, Notes: map[string]int{},
		OtherSplits: map[string]int{},
		Options:     lintOptions{f.splits, f.options, f.maxTokens, settings},
		checker:     redact.NewChecker(redact.NewKnown(redact.Environment(s.Environ))),
		exported:    map[string]bool{},
	}
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
		chosen, err := f.chosen(ctx, s, data)
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
		try := shell("tracesmith", "stats", data.Place)
		if !f.all && slices.Contains(selection.Builtin(), rep.Selection) {
			try = shell("tracesmith", "filter", data.Place, "--recipe", rep.Selection, "--reasons")
		}
		return nil, rep, &Error{Code: ExitUsage, Try: try, Err: fmt.Errorf("selection %s keeps none of %d episodes", rep.Selection, rep.Read)}
	}
	return keep, rep, nil
}

// chosen returns the selection of --selection, or else the one that the dataset was published with.
func (f *exportFlags) chosen(ctx context.Context, s *State, data *wire.Data) (selection.Selector, error) {
	if f.selection == "" && data.Dataset != nil {
		published, err := data.Dataset.Selection(ctx)
		if err != nil {
			return nil, err
		}
		if published != nil {
			fmt.Fprintf(s.Stderr, "exporting the dataset's selection %s; --selection chooses another\n", published.Header.Name)
			return published, nil
		}
	}
	return selection.Load(cmp.Or(f.selection, selection.Default))
}

func (f *exportFlags) noRows(rep lint) error {
	if rep.secret != nil {
		return Usage(fmt.Errorf("no row: %d of %d selected episodes are held back: %w", rep.Dropped[heldBack], rep.Selected, rep.secret))
	}
	reason := "they have no turns"
	switch phase := f.options.Phase; {
	case rep.outside() == rep.Selected:
		return &Error{Code: ExitUsage, Err: fmt.Errorf("no selected episode is in %s, only %s: choose with --split, or take every split with --split %s", f.splitsText(), rep.otherSplits(), allSplits)}
	case phase != "" && len(rep.phases) == 0:
		reason = "none holds more than one conversation: leave out --phase"
	case phase != "" && !slices.Contains(rep.phases, phase):
		reason = fmt.Sprintf("none has a conversation %q: choose %s", phase, strings.Join(rep.phases, " or "))
	case len(rep.counts()) > 1: // one of them is episodes_without_rows
		reason = strings.Join(rep.counts(), ", ")
	}
	return &Error{Code: ExitUsage, Err: fmt.Errorf("no row of %d selected episodes: %s", rep.Selected, reason)}
}

// render writes the rows of the episodes in keep to out.
func (f *exportFlags) render(ctx context.Context, out *output, view sinks.View, data *wire.Data, keep map[string]bool, rep *lint) error {
	if l, ok := view.(sinks.TokenLimiter); ok {
		rep.limit, rep.remedy = l.TokenLimit()
	}
	for t, err := range data.Trajectories(ctx) {
		if err != nil {
			return Usage(err)
		}
		if !keep[t.Episode.EpisodeID] {
			continue
		}
		if !f.inSplit(t.Episode.Split) {
			rep.OtherSplits[t.Episode.Split]++
			continue
		}
		for _, s := range t.Steps {
			if s.Phase != nil && !slices.Contains(rep.phases, *s.Phase) {
				rep.phases = append(rep.phases, *s.Phase)
			}
		}
		if err := rep.checker.Check("episode "+t.Episode.EpisodeID, t); err != nil {
			rep.Dropped[heldBack]++
			rep.secret = err
			continue
		}
		rows, notes, err := view.Render(t)
		if err != nil {
			return fmt.Errorf("rendering episode %s: %w", t.Episode.EpisodeID, err)
		}
		rep.note(notes)
		for i := range t.Steps {
			if t.Steps[i].ObservationCut() {
				rep.Notes[observationsCut]++
			}
		}
		for i := range rows {
			rows[i].Episodes = []string{t.Episode.EpisodeID}
		}
		if err := f.write(out, rows, rep); err != nil {
			return err
		}
	}
	finisher, ok := view.(sinks.Finisher)
	if !ok {
		return nil
	}
	rows, notes, err := finisher.Finish()
	if err != nil {
		return err
	}
	rep.note(notes)
	return f.write(out, rows, rep)
}

// write adds rows to the output and counts them. It drops those that exceed --max-tokens.
func (f *exportFlags) write(out *output, rows []sinks.Row, rep *lint) error {
	for _, row := range rows {
		tokens := f.tokens(row.Texts)
		if f.maxTokens > 0 && tokens > f.maxTokens {
			rep.Dropped["rows_dropped_too_long"]++
			continue
		}
		if err := out.write(row); err != nil {
			return err
		}
		for _, id := range row.Episodes {
			rep.exported[id] = true
		}
		rep.Rows++
		trained, masked := f.tokens(row.Trained), f.tokens(row.Masked)
		rep.Tokens.Total += int64(tokens)
		rep.Tokens.Trained += int64(trained)
		rep.Tokens.Masked += int64(masked)
		rep.Tokens.Context += int64(tokens - trained - masked)
		rep.Tokens.Longest = max(rep.Tokens.Longest, tokens)
		if rep.limit > 0 && tokens > rep.limit {
			rep.Tokens.OverLimit++
		}
	}
	return nil
}

func (f *exportFlags) tokens(texts []string) int {
	n := 0
	for _, text := range texts {
		n += f.options.Count(text)
	}
	return n
}
