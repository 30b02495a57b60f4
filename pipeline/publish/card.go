package publish

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/tracesmith/tracesmith/env/shellwords"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
)

//go:embed card.md.tmpl
var cardText string

var cardTemplate = template.Must(template.New("card").Funcs(template.FuncMap{
	"rows": byCount[int], "judged": byCount[VerdictCounts], "spread": spreadCells, "share": percent, "quote": quoteYAML, "cell": cell, "usd": usd, "columns": schemas.TableDoc.Markdown, "found": TestFound.cell, "noEpisode": Stats.NoEpisode,
}).Parse(cardText))

// card is the data of the template.
type card struct {
	M            schemas.Manifest // of the version
	S            Stats            // of its episodes
	C            Contamination    // tasks and episodes of public benchmarks
	About        string
	Size         string
	Configs      []cardConfig
	License      string   // one of the Hub's license names, a YAML list of them, other or unknown
	Origins      []string // source_datasets
	TopRepos     []string // the repositories with the most episodes
	Criteria     []string // keys of Stats.Criteria, most frequent first
	Combined     []string // the most frequent keys of Stats.Combined
	Plots        []Plot
	Tables       []schemas.TableDoc // tables of the version
	GoldMasked   int
	GoldSelected []string // columns computed from the reference fix that the selection uses
	Imported     string   // format of imported episodes; "" for runs
	Runs         []string
	Rebuild      string // command that recreates the version
	OwnRecipe    bool   // the selection is the user's, not a built-in one
	Citation     string
}

// cardConfig is a configuration in the front matter of the card: one table.
type cardConfig struct {
	Name    string
	Default bool
	Splits  []cardSplit
}

type cardSplit struct {
	Name  string
	Files []string
}

// renderCard returns the dataset card, README.md.
func (p *publication) renderCard(m schemas.Manifest, s Stats, contamination Contamination, plots []Plot) ([]byte, error) {
	c := card{
		M: m, S: s, C: contamination, About: p.cfg.Selection.About(), Plots: plots, Size: sizeCategory(s.Episodes), GoldMasked: s.Masks["gold"],
		License: hubLicense(s.Licenses), Origins: origins(s.Sources), Imported: p.cfg.Imported, Citation: citation(m),
		TopRepos: firstN(byCount(s.Repos), 10), Criteria: byCount(s.Criteria), Combined: firstN(byCount(s.Combined), 5),
	}
	c.Criteria = slices.DeleteFunc(c.Criteria, func(name string) bool { return strings.Contains(name, "(") }) // commands have their own table
	for _, table := range []string{"episodes", "steps"} {
		c.Configs = append(c.Configs, cardConfig{Name: table, Default: table == "episodes", Splits: splitsOf(m.Files, table)})
	}
	for _, t := range schemas.TableDocs {
		if version := m.Schemas[t.Name]; version != "" {
			c.Tables = append(c.Tables, t.At(version))
		}
	}
	for _, r := range m.Runs {
		if !slices.Contains(c.Runs, r.RunID) {
			c.Runs = append(c.Runs, r.RunID)
		}
	}
	var selectionArg string
	selectionArg, c.OwnRecipe = p.selectionArg()
	c.Rebuild = p.rebuild(selectionArg)
	c.GoldSelected = p.goldColumns()
	var b strings.Builder
	if err := cardTemplate.Execute(&b, c); err != nil {
		return nil, fmt.Errorf("writing the dataset card: %w", err)
	}
	return []byte(b.String()), nil
}

// goldColumn matches the names of columns that are computed from the reference fix.
var goldColumn = regexp.MustCompile(`\bgold_\w+`)

// goldColumns returns the columns that are computed from the reference fix and decide which episodes the selection keeps.
func (p *publication) goldColumns() []string {
	var out []string
	for _, f := range p.sel.Info.Funnel { // named predicates are expanded
		for _, name := range goldColumn.FindAllString(f.Expr, -1) {
			if name != "gold_used" && !slices.Contains(out, name) { // gold_used says what the policy could see
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// selectionArg returns the selection as a command-line argument. isOwn is true if the
// selection is not built in; the argument is then the placeholder RECIPE.
func (p *publication) selectionArg() (arg string, isOwn bool) {
	name := p.sel.Info.Name
	if builtin, err := selection.Load(name); err == nil && slices.Contains(selection.Builtin(), name) && builtin.SHA256() == p.sel.Info.SHA256 {
		return name, false
	}
	return "RECIPE", true
}

// rebuild returns the command that recreates the version. Placeholders for locations are
// in capital letters.
func (p *publication) rebuild(selectionArg string) string {
	command := "tracesmith publish RUN... --to DATASET --name " + shellwords.Command(p.cfg.Name) + " --selection " + selectionArg
	if p.cfg.Imported != "" {
		command = "tracesmith import " + p.cfg.Imported + " FILE... -o DATASET -p publish.name=" + shellwords.Command(p.cfg.Name) + " -p publish.selection=" + selectionArg
	}
	switch {
	case p.cfg.Benchmarks == nil:
		return command
	case p.cfg.Imported != "":
		return command + " -p publish.benchmark_hashes=[HASHES]"
	}
	return command + " --benchmark-hashes HASHES"
}

func firstN(list []string, n int) []string { return list[:min(n, len(list))] }

// hubLicenses maps SPDX licenses to their names on the Hugging Face Hub
// (https://huggingface.co/docs/hub/repositories-licenses).
var hubLicenses = map[string]string{
	"GPL-2.0-only": "gpl-2.0", "GPL-2.0-or-later": "gpl-2.0", "GPL-3.0-only": "gpl-3.0", "GPL-3.0-or-later": "gpl-3.0",
	"LGPL-2.1-only": "lgpl-2.1", "LGPL-2.1-or-later": "lgpl-2.1", "LGPL-3.0-only": "lgpl-3.0", "LGPL-3.0-or-later": "lgpl-3.0",
	"AGPL-3.0-only": "agpl-3.0", "AGPL-3.0-or-later": "agpl-3.0",
	"MIT": "mit", "Apache-2.0": "apache-2.0", "BSD-2-Clause": "bsd-2-clause", "BSD-3-Clause": "bsd-3-clause", "ISC": "isc",
	"MPL-2.0": "mpl-2.0", "Unlicense": "unlicense", "CC0-1.0": "cc0-1.0", "CC-BY-4.0": "cc-by-4.0", "CC-BY-SA-4.0": "cc-by-sa-4.0",
	"Zlib": "zlib", "EPL-2.0": "epl-2.0", "BSL-1.0": "bsl-1.0", "PostgreSQL": "postgresql", "WTFPL": "wtfpl", "Artistic-2.0": "artistic-2.0",
}

// hubLicense returns the license for the front matter: a name, a YAML list of names,
// "unknown" if no license is known, or "other" if the Hub does not have all names.
func hubLicense(counts map[string]int) string {
	if len(counts) == 1 && counts["unknown"] > 0 {
		return "unknown"
	}
	var names []string
	for _, spdx := range byCount(counts) {
		name, known := hubLicenses[spdx]
		if !known {
			return "other"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 1 {
		return names[0]
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// origins returns source_datasets in the Hub's vocabulary. The user's own tasks are "original".
func origins(sources map[string]int) []string {
	var out []string
	for _, s := range byCount(sources) {
		name := "extended|other-" + s
		if slices.Contains([]string{"builtin", "dir", "file", "free"}, s) {
			name = "original"
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// splitsOf returns the splits of a table with their files, in the order of schemas.Splits.
func splitsOf(files []schemas.ManifestFile, table string) []cardSplit {
	var out []cardSplit
	for _, split := range schemas.Splits {
		var paths []string
		for _, f := range files {
			if f.Table == table && f.Split == split {
				paths = append(paths, f.Path)
			}
		}
		if len(paths) > 0 {
			slices.Sort(paths)
			out = append(out, cardSplit{split, paths})
		}
	}
	return out
}

// sizeCategory returns the Hub's category for a number of rows.
func sizeCategory(n int) string {
	switch {
	case n < 1_000:
		return "n<1K"
	case n < 10_000:
		return "1K<n<10K"
	case n < 100_000:
		return "10K<n<100K"
	case n < 1_000_000:
		return "100K<n<1M"
	}
	return "1M<n<10M"
}

// quoteYAML returns s as a double-quoted YAML scalar. Every JSON string is one.
func quoteYAML(s string) (string, error) {
	b, err := schemas.CanonicalJSON(s)
	return string(b), err
}

func usd(v *float64) string {
	if v == nil {
		return "none reported"
	}
	return fmt.Sprintf("%.2f USD", *v)
}

// spreadCells returns the cells of a row in the table of distributions.
func spreadCells(v any) string {
	if ints, ok := v.(Spread[int64]); ok {
		return cells(ints, "%d")
	}
	return cells(v.(Spread[float64]), "%.4f")
}

func cells[T int64 | float64](s Spread[T], format string) string {
	if s.N == 0 {
		return " 0 | | | | | | |"
	}
	out := fmt.Sprintf(" %d |", s.N)
	mean := fmt.Sprintf("%.1f", s.Mean)
	if format != "%d" {
		mean = fmt.Sprintf(format, s.Mean)
	}
	for _, c := range []string{fmt.Sprintf(format, s.Min), mean, fmt.Sprintf(format, s.P50), fmt.Sprintf(format, s.P90), fmt.Sprintf(format, s.P99), fmt.Sprintf(format, s.Max)} {
		out += " " + c + " |"
	}
	return out
}

func percent(n, total int) string {
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(max(total, 1)))
}

// cell escapes s for a Markdown table.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ").Replace(s)
}
