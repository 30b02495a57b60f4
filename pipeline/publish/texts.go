package publish

import (
	"fmt"

	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
)

// texts renders the reports, the figures and the dataset card.
func (p *publication) texts(m schemas.Manifest, t *Tally) ([]textFile, error) {
	t.AddDead(p.in.deadLetters)
	stats := t.Stats()
	funnel, err := schemas.CanonicalJSON(m.Selection)
	if err != nil {
		return nil, err
	}
	statsJSON, err := schemas.CanonicalJSON(stats)
	if err != nil {
		return nil, err
	}
	plots := t.Plots()
	contamination := p.in.contamination.report()
	card, err := p.renderCard(m, stats, contamination, plots)
	if err != nil {
		return nil, err
	}
	croissantJSON, err := croissant(m, stats)
	if err != nil {
		return nil, err
	}
	contaminationFile, err := contamination.file()
	if err != nil {
		return nil, err
	}
	redaction := t.redaction
	redaction.HeldBack = p.in.withheld
	redactionJSON, err := schemas.CanonicalJSON(redaction)
	if err != nil {
		return nil, err
	}
	files := []textFile{
		{cardKey, card}, {"croissant.json", croissantJSON}, contaminationFile, {redactionPath, redactionJSON},
		{"reports/funnel.json", funnel}, {"reports/stats.json", statsJSON},
	}
	for _, plot := range plots {
		files = append(files, textFile{"plots/" + plot.Name + ".svg", plot.SVG})
	}
	return files, p.checkTexts(files)
}

// checkTexts returns an error if a text contains a secret. Episodes with secrets are already
// withheld, so such a secret comes from the publisher's configuration.
func (p *publication) checkTexts(files []textFile) error {
	check := redact.NewChecker(p.cfg.Secrets)
	for _, f := range files {
		if err := check.Check(f.path, f.body); err != nil {
			return fmt.Errorf("%w: change its source, such as the name of the dataset or the description of the selection", err)
		}
	}
	return nil
}
