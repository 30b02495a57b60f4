package publish

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/tracesmith/tracesmith/env/shellwords"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
)

// textFile is a file of the version that is not a table.
type textFile struct {
	path string
	body []byte
}

func (t textFile) entry() schemas.ManifestFile {
	return schemas.ManifestFile{Path: t.path, Bytes: int64(len(t.body)), SHA256: schemas.HashBytes(t.body)}
}

// texts makes the reports and the dataset card.
func (p *publication) texts(m schemas.Manifest, t *Tally) ([]textFile, error) {
	t.AddDead(p.in.dead)
	stats := t.Stats()
	funnel, err := schemas.CanonicalJSON(m.Selection)
	if err != nil {
		return nil, err
	}
	numbers, err := schemas.CanonicalJSON(stats)
	if err != nil {
		return nil, err
	}
	plots := t.Plots()
	known := p.in.known.report()
	card, err := p.renderCard(m, stats, known, plots)
	if err != nil {
		return nil, err
	}
	about, err := croissant(m, stats)
	if err != nil {
		return nil, err
	}
	contamination, err := known.file()
	if err != nil {
		return nil, err
	}
	redaction := t.redaction
	redaction.HeldBack = p.in.held
	secrets, err := schemas.CanonicalJSON(redaction)
	if err != nil {
		return nil, err
	}
	files := []textFile{{"README.md", card}, {"croissant.json", about}, contamination, {redactionPath, secrets}, {"reports/funnel.json", funnel}, {"reports/stats.json", numbers}}
	for _, plot := range plots {
		files = append(files, textFile{"plots/" + plot.Name + ".svg", plot.SVG})
	}
	return files, p.checkTexts(files)
}

// checkTexts holds the version back if one of its texts holds a secret, which
// then stands in what the publisher wrote: a name, a description.
func (p *publication) checkTexts(files []textFile) error {
	check := redact.NewChecker(p.cfg.Secrets)
	for _, f := range files {
		if err := check.Check(f.path, f.body); err != nil {
			return fmt.Errorf("%w: change what it is made of, such as the name of the dataset or the description of the selection", err)
		}
	}
	return nil
}

//go:embed card.md.tmpl
var cardText string

var cardTemplate = template.Must(template.New("card").Funcs(template.FuncMap{
	"rows": byCount[int], "judged": byCount[Judged], "spread": spreadCells, "share": share, "quote": quoteYAML, "cell": cell, "usd": usd,
}).Parse(cardText))

// card is what the template sees.
type card struct {
	M          schemas.Manifest
	S          Stats
	C          Contamination
	About      string
	Size       string
	Configs    []cardConfig
	License    string   // a licence of the Hub's list, a YAML list of them, other or unknown
	Origins    []string // source_datasets
	Chosen     string   // how export is told the selection
	TopRepos   []string
	Criteria   []string
	Combined   []string
	Plots      []Plot
	Tables     []schemas.TableDoc // those that the version has
	GoldMasked int
	Imported   string // format that was imported, "" for runs
	Runs       []string
	Rebuild    string // the command
	OwnRecipe  bool   // the selection is none that comes with the program
	Citation   string
}

type cardConfig struct {
	Name    string
	Default bool
	Splits  []cardSplit
}

type cardSplit struct {
	Name  string
	Files []string
}

func (p *publication) renderCard(m schemas.Manifest, s Stats, known Contamination, plots []Plot) ([]byte, error) {
	c := card{
		M: m, S: s, C: known, About: p.cfg.Selection.About(), Plots: plots, Size: sizeCategory(s.Episodes), GoldMasked: s.Masks["gold"],
		License: hubLicense(s.Licenses), Origins: origins(s.Sources), Imported: p.cfg.Imported, Citation: citation(m),
		TopRepos: first(byCount(s.Repos), 10), Criteria: byCount(s.Criteria), Combined: first(byCount(s.Combined), 5),
	}
	c.Criteria = slices.DeleteFunc(c.Criteria, func(name string) bool { return strings.Contains(name, "(") }) // commands have a table
	for _, table := range []string{"episodes", "steps"} {
		c.Configs = append(c.Configs, cardConfig{Name: table, Default: table == "episodes", Splits: splitsOf(m.Files, table)})
	}
	for _, t := range schemas.Documented {
		if version := m.Schemas[t.Name]; version != "" {
			c.Tables = append(c.Tables, t.At(version))
		}
	}
	for _, r := range m.Runs {
		if !slices.Contains(c.Runs, r.RunID) {
			c.Runs = append(c.Runs, r.RunID)
		}
	}
	c.Chosen, c.OwnRecipe = p.chosen()
	c.Rebuild = p.rebuild(c.Chosen)
	var b strings.Builder
	if err := cardTemplate.Execute(&b, c); err != nil {
		return nil, fmt.Errorf("writing the dataset card: %w", err)
	}
	return []byte(b.String()), nil
}

// chosen is how a command is told the selection; own: it is none of those that
// come with the program.
func (p *publication) chosen() (word string, own bool) {
	name := p.sel.Info.Name
	if builtin, err := selection.Load(name); err == nil && slices.Contains(selection.Builtin(), name) && builtin.SHA256() == p.sel.Info.SHA256 {
		return name, false
	}
	return "RECIPE", true
}

// rebuild is the command that makes the version again, with words in capitals
// where the reader's own places stand.
func (p *publication) rebuild(chosen string) string {
	command := "tracesmith publish RUN... --to DATASET --name " + shellwords.Command(p.cfg.Name) + " --selection " + chosen
	if p.cfg.Imported != "" {
		command = "tracesmith import " + p.cfg.Imported + " FILE... -o DATASET -p publish.name=" + shellwords.Command(p.cfg.Name) + " -p publish.selection=" + chosen
	}
	switch {
	case p.cfg.Benchmarks == nil:
		return command
	case p.cfg.Imported != "":
		return command + " -p publish.benchmark_hashes=[HASHES]"
	}
	return command + " --benchmark-hashes HASHES"
}

// citation is an entry for BibTeX; a version has no author and no year but those
// that its publisher adds.
func citation(m schemas.Manifest) string {
	safe := strings.NewReplacer("{", "", "}", "", "\\", "", "%", "")
	return fmt.Sprintf("@misc{tracesmith-%s,\n  title = {%s: debugging trajectories},\n  version = {%s},\n  note = {Dataset, made with tracesmith %s}\n}",
		m.Version, safe.Replace(m.Dataset), m.Version, safe.Replace(m.Producer.Version))
}

func first(list []string, n int) []string { return list[:min(n, len(list))] }

// hubLicenses are the Hub's names of SPDX licences that are not the SPDX name in
// lower case (hub-docs: docs/hub/repositories-licenses.md).
var hubLicenses = map[string]string{
	"GPL-2.0-only": "gpl-2.0", "GPL-2.0-or-later": "gpl-2.0", "GPL-3.0-only": "gpl-3.0", "GPL-3.0-or-later": "gpl-3.0",
	"LGPL-2.1-only": "lgpl-2.1", "LGPL-2.1-or-later": "lgpl-2.1", "LGPL-3.0-only": "lgpl-3.0", "LGPL-3.0-or-later": "lgpl-3.0",
	"AGPL-3.0-only": "agpl-3.0", "AGPL-3.0-or-later": "agpl-3.0",
	"MIT": "mit", "Apache-2.0": "apache-2.0", "BSD-2-Clause": "bsd-2-clause", "BSD-3-Clause": "bsd-3-clause", "ISC": "isc",
	"MPL-2.0": "mpl-2.0", "Unlicense": "unlicense", "CC0-1.0": "cc0-1.0", "CC-BY-4.0": "cc-by-4.0", "CC-BY-SA-4.0": "cc-by-sa-4.0",
	"Zlib": "zlib", "EPL-2.0": "epl-2.0", "BSL-1.0": "bsl-1.0", "PostgreSQL": "postgresql", "WTFPL": "wtfpl", "Artistic-2.0": "artistic-2.0",
}

// hubLicense is the licence in the front matter. It promises nothing that does not
// hold for every episode.
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

// origins are source_datasets in the Hub's words: tasks of one's own are original.
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

// sizeCategory is the Hub's word for a number of rows.
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

// quoteYAML writes s as a YAML double-quoted scalar, which JSON strings are.
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

// spreadCells are the cells of a row of the table of distributions.
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

func share(n, of int) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(max(of, 1))) }

// cell makes s safe inside a table of Markdown.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ").Replace(s)
}
