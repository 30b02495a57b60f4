package publish

import (
	"fmt"

	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
)

// texts renders the reports, the figures and the dataset card.
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
	redaction.HeldBack = p.in.withheld
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

// checkTexts returns an error if a text contains a secret, which then comes from the
// publisher: from a name or a description.
func (p *publication) checkTexts(files []textFile) error {
	check := redact.NewChecker(p.cfg.Secrets)
	for _, f := range files {
		if err := check.Check(f.path, f.body); err != nil {
			return fmt.Errorf("%w: change its source, such as the name of the dataset or the description of the selection", err)
		}
	}
	return nil
}
