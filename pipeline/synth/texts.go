package synth

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/tracesmith/tracesmith/env/tasks/lint"
)

//go:embed report.tmpl
var reportText string

var reportPrompt = template.Must(template.New("report").Parse(reportText))

// writeTexts creates the issue texts and keeps those that pass the linter.
func (w *worker) writeTexts(ctx context.Context, s *repoState, t *Trial, r *release) error {
	i := issue{Command: s.repo.Task.Entrypoint, Failures: t.Failures, Failing: t.FailToPass, Pick: picker(fmt.Sprintf("%d %s", w.cfg.Seed, t.Patch))}
	sec := lint.Names{Words: lint.ChangedWords([]byte(t.Patch)), Files: touched(t.Patch), Output: shown(t, s.command) + i.Command, Plain: issue{}.testRun()}
	for _, fn := range t.Funcs {
		_, name, _ := strings.Cut(fn, "::")
		sec.Functions = append(sec.Functions, name)
	}
	r.Texts, r.Leaks = map[string]string{}, map[string]string{}
	put := func(kind string, versions ...string) {
		for _, text := range versions {
			if text == "" {
				continue
			}
			found := lint.Text(text, sec)
			if len(found) == 0 {
				r.Texts[kind] = text
				delete(r.Leaks, kind)
				return
			}
			r.Leaks[kind] = found[0].String()
		}
	}
	put(TextTestRun, i.testRun(), i.names())
	put(TextSymptom, i.symptom(true), i.symptom(false))
	put(TextNote, i.note())
	put(TextQuestion, i.question(true), i.question(false))
	if w.cfg.Model == nil {
		return nil
	}
	text, why, err := w.reportText(ctx, t, i)
	if err != nil {
		return err
	}
	if why != "" {
		r.Leaks[TextReporter] = why
	}
	put(TextReporter, text)
	return nil
}

// maxReport bounds a report, in bytes.
const maxReport = 3000

// reportText returns a report written by the model, or why there is none.
func (w *worker) reportText(ctx context.Context, t *Trial, i issue) (text, why string, err error) {
	if len(t.Failures) == 0 {
		return "", "no failure is described", nil
	}
	var prompt bytes.Buffer
	if err := reportPrompt.Execute(&prompt, map[string]string{"Symptom": i.noted(), "Output": strings.TrimSpace(t.Failures[0].Text)}); err != nil {
		return "", "", fmt.Errorf("writing the prompt: %w", err)
	}
	said, err := w.ask(ctx, t.Repo, reportKey(t.Key), prompt.String())
	switch {
	case overBudget(err):
		return "", "not written: the budget is used up", nil
	case err != nil:
		return "", "", err
	}
	text = strings.TrimSpace(strings.ToValidUTF8(said.Answer, "?"))
	switch {
	case said.Refused != "":
		return "", said.Refused, nil
	case text == "", len(text) > maxReport:
		return "", fmt.Sprintf("the model's answer has %d bytes", len(text)), nil
	}
	return text, "", nil
}

// reportKey returns the journal's key of a trial's report.
func reportKey(key string) string { return "report:" + key }
