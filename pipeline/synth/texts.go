package synth

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	// A copy of text/template without method calls, so that the linker can remove unused methods.
	template "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/tracesmith/tracesmith/env/tasks/lint"
)

//go:embed report.tmpl
var reportText string

var reportPrompt = template.Must(template.New("report").Parse(reportText))

// writeTexts creates all issue texts of a trial. Texts that pass the linter go to r.Texts. r.Leaks
// says why the others are missing: the first finding of the linter, or why the model wrote none.
func (w *worker) writeTexts(ctx context.Context, s *repoState, t *Trial, r *release) error {
	i := issue{Command: s.repo.Task.Entrypoint, Failures: t.Failures, Failing: t.FailToPass, Pick: picker(fmt.Sprintf("%d %s", w.cfg.Seed, t.Patch))}
	secrets := lint.Names{Words: lint.ChangedWords([]byte(t.Patch)), Files: changedPaths(t.Patch), Output: failureOutput(t, s.command) + i.Command, Paths: s.repo.Tree.Paths()}
	secrets.Plain = fixedSentences()
	for _, fn := range t.Funcs {
		_, name, _ := strings.Cut(fn, "::")
		secrets.Functions = append(secrets.Functions, name)
	}
	r.Texts, r.Leaks = map[string]string{}, map[string]string{}
	put := func(kind string, versions ...string) { // the first version that passes is kept
		for _, text := range versions {
			if text == "" {
				continue
			}
			findings := lint.Text(text, secrets)
			if len(findings) == 0 {
				r.Texts[kind] = text
				delete(r.Leaks, kind)
				return
			}
			r.Leaks[kind] = findings[0].String()
		}
	}
	bare := i // without the lines of tests
	bare.Failures = slices.Clone(i.Failures)
	for k := range bare.Failures {
		bare.Failures[k].Lines = nil
	}
	put(TextTestRun, i.testRun(), bare.testRun(), i.testNames())
	const withImports, withoutImports = true, false
	put(TextSymptom, i.symptom(withImports), i.symptom(withoutImports))
	put(TextNote, i.note(), bare.note())
	put(TextQuestion, i.question(withImports), i.question(withoutImports))
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

// fixedSentences returns the sentences of issue texts that do not depend on a bug. They give nothing away.
func fixedSentences() string {
	var b strings.Builder
	for n := range 64 { // enough to choose each wording
		i := issue{Pick: picker(fmt.Sprint(n))}
		b.WriteString(i.testRun() + "\n" + i.ending() + "\n")
	}
	return b.String() + "Other tests fail here in the same way too. The first one fails here. The failing line. It makes others fail as well."
}

// maxReport is the maximum size of a report in bytes.
const maxReport = 3000

// reportText returns a report written by the model, or why there is none.
func (w *worker) reportText(ctx context.Context, t *Trial, i issue) (text, why string, err error) {
	if len(t.Failures) == 0 {
		return "", "no failure is described", nil
	}
	var prompt bytes.Buffer
	if err := reportPrompt.Execute(&prompt, map[string]string{"Symptom": i.reportFacts(), "Output": strings.TrimSpace(t.Failures[0].Text)}); err != nil {
		return "", "", fmt.Errorf("writing the prompt: %w", err)
	}
	answer, err := w.ask(ctx, t.Repo, reportKey(t.Key), prompt.String())
	switch {
	case overBudget(err):
		return "", "not written: the budget is used up", nil
	case err != nil:
		return "", "", err
	}
	text = strings.TrimSpace(strings.ToValidUTF8(answer.Answer, "?"))
	switch {
	case answer.Refused != "":
		return "", answer.Refused, nil
	case text == "", len(text) > maxReport:
		return "", fmt.Sprintf("the model's answer has %d bytes, not 1 to %d", len(text), maxReport), nil
	}
	return text, "", nil
}

// reportKey returns the key in the journal of the report about a trial.
func reportKey(key string) string { return "report:" + key }
