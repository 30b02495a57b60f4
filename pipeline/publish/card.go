package publish

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/tracesmith/tracesmith/pipeline/redact"
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
	card, err := renderCard(m, stats, known, plots, p.cfg.Selection.About())
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
	"rows": byCount, "quote": quoteYAML, "cell": cell, "usd": usd,
}).Parse(cardText))

// card is what the template sees.
type card struct {
	M          schemas.Manifest
	S          Stats
	C          Contamination
	About      string
	Size       string
	Configs    []cardConfig
	Licenses   []string
	TopRepos   []string
	Plots      []Plot
	Tables     []schemas.TableDoc // those that the version has
	GoldMasked int
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

func renderCard(m schemas.Manifest, s Stats, known Contamination, plots []Plot, about string) ([]byte, error) {
	c := card{M: m, S: s, C: known, About: about, Plots: plots, Size: sizeCategory(s.Episodes), GoldMasked: s.Masks["gold"]}
	for _, table := range []string{"episodes", "steps"} {
		c.Configs = append(c.Configs, cardConfig{Name: table, Default: table == "episodes", Splits: splitsOf(m.Files, table)})
	}
	for _, t := range schemas.Documented {
		if m.Schemas[t.Name] != "" {
			c.Tables = append(c.Tables, t)
		}
	}
	for _, l := range byCount(s.Licenses) {
		if l != "unknown" {
			c.Licenses = append(c.Licenses, strings.ToLower(l))
		}
	}
	c.TopRepos = byCount(s.Repos)
	c.TopRepos = c.TopRepos[:min(10, len(c.TopRepos))]
	var b strings.Builder
	if err := cardTemplate.Execute(&b, c); err != nil {
		return nil, fmt.Errorf("writing the dataset card: %w", err)
	}
	return []byte(b.String()), nil
}

func splitsOf(files []schemas.ManifestFile, table string) []cardSplit {
	var out []cardSplit
	for _, split := range splits {
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

// cell makes s safe inside a table of Markdown.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ").Replace(s)
}
