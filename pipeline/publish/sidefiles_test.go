package publish_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

func records[T any](t *testing.T, table *arrowrec.Table, path string) []T {
	t.Helper()
	var out []T
	for row, err := range formats.Read[T](path, table) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	return out
}

func TestSideFilesArePublished(t *testing.T) {
	runDir, root := t.TempDir(), t.TempDir()
	staging := dir(t, runDir)
	for _, e := range golden("run", 3) {
		put(t, staging, e)
	}
	id := golden("run", 1)[0].Episode.EpisodeID
	mustWrite(t, filepath.Join(runDir, "dead-letters.jsonl"), []byte(
		`{"run_id":"run","unit_key":"dead-1","stage":"rollout","state":"failed","error_class":"infra","error_message":"container vanished","attempts":3,"retryable":true}`+"\n"+
			`{"run_id":"run","unit_key":"`+id+`","stage":"rollout","state":"failed","attempts":1}`+"\n"))
	mustWrite(t, filepath.Join(runDir, "annotations.jsonl"), []byte(
		`{"annotation_id":"a1","episode_id":"`+id+`","kind":"fact","label":"wrong","uses_gold":true,"annotator":"judge","created_at":"2026-01-02T03:04:05Z"}`+"\n"+
			`{"annotation_id":"a2","episode_id":"`+id+`","kind":"fact","label":"true","uses_gold":true,"annotator":"judge","created_at":"2026-01-02T03:04:05Z"}`+"\n"+
			`{"annotation_id":"a3","episode_id":"of another dataset","kind":"human","uses_gold":false,"annotator":"me","created_at":"2026-01-02T03:04:05Z"}`+"\n"))
	run(t, config(t, dir(t, root), staging))
	dead := records[schemas.DeadLetterRow](t, arrowrec.DeadLetters, filepath.Join(root, "exclusions", "dead-letters.parquet"))
	if len(dead) != 1 || dead[0].UnitKey != "dead-1" || *dead[0].ErrorMessage != "container vanished" || dead[0].Attempts != 3 {
		t.Errorf("dead letters: %v", dead)
	}
	files, err := filepath.Glob(filepath.Join(root, "data", "annotations", "*.parquet"))
	if err != nil || len(files) != 1 {
		t.Fatalf("annotations: %v %v", files, err)
	}
	if notes := records[schemas.AnnotationRow](t, arrowrec.Annotations, files[0]); len(notes) != 2 || notes[0].AnnotationID != "a1" {
		t.Errorf("annotations: %v", notes)
	}
	d, err := publish.Open(t.Context(), dir(t, root))
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range d.Episodes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if known := e.WrongFactRatio != nil; known != (e.EpisodeID == id) || known && *e.WrongFactRatio != 0.5 {
			t.Errorf("wrong_fact_ratio of %s: %v", e.EpisodeID, e.WrongFactRatio)
		}
	}
	recipe := filepath.Join(t.TempDir(), "judged.yaml")
	mustWrite(t, recipe, []byte("name: judged\npredicates: ['wrong_fact_ratio == 0.5 && steps.exists(s, s.train)']\n"))
	withSteps := config(t, dir(t, t.TempDir()), staging)
	if withSteps.Selection, err = selection.Load(recipe); err != nil {
		t.Fatal(err)
	}
	if judged := run(t, withSteps); judged.Kept != 1 {
		t.Errorf("a selection that reads steps keeps %d episodes, want 1", judged.Kept)
	}
	if again := run(t, config(t, dir(t, root), staging)); !again.AlreadyPublished {
		t.Error("the same input gives another version")
	}
}

func TestEpisodesWithSecretsAreWithheld(t *testing.T) {
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	staging, root := dir(t, t.TempDir()), t.TempDir()
	all := golden("run", 3)
	leaky := all[1]
	leaky.Steps = append([]schemas.StepRow(nil), leaky.Steps...)
	leaky.Steps[0].Message = "use " + secret
	put(t, staging, all[0])
	put(t, staging, leaky)
	put(t, staging, all[2])
	rep := run(t, config(t, dir(t, root), staging))
	if rep.Episodes != 2 || rep.Withheld != 1 {
		t.Errorf("%+v", rep)
	}
	dead := records[schemas.DeadLetterRow](t, arrowrec.DeadLetters, filepath.Join(root, "exclusions", "dead-letters.parquet"))
	if len(dead) != 1 || dead[0].UnitKey != leaky.Episode.EpisodeID || *dead[0].ErrorClass != "secret_found" ||
		!strings.Contains(*dead[0].ErrorMessage, "steps[0].message still holds a secret (github_token)") {
		t.Errorf("%v", dead)
	}
	for rel := range tree(t, root) {
		body, err := os.ReadFile(filepath.Join(root, rel))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(body), secret) {
			t.Errorf("%s contains the secret", rel)
		}
	}
	rows, err := schemas.CanonicalJSON(dead) // the search above cannot find a secret in the compressed file
	if err != nil || strings.Contains(string(rows), secret) {
		t.Errorf("%s, %v", rows, err)
	}
	wantDataset(t, dir(t, root), all[0], all[2])

	// Each remaining episode contains a secret that only the publisher knows.
	cfg := config(t, dir(t, t.TempDir()), staging)
	cfg.Secrets = redact.NewKnown([]string{all[0].Episode.EpisodeID, all[2].Episode.EpisodeID})
	if _, err := publish.Publish(t.Context(), cfg); !errors.Is(err, publish.ErrWithheld) {
		t.Errorf("%v, want ErrWithheld", err)
	}
}

func TestSideFilesAreChecked(t *testing.T) {
	for name, c := range map[string]struct{ file, line, want string }{
		"damaged":    {"dead-letters.jsonl", `{"run_id":`, "dead-letters.jsonl, line 1"},
		"unknown":    {"annotations.jsonl", `{"annotation":"x"}`, "unknown field"},
		"incomplete": {"annotations.jsonl", `{"annotation_id":"x"}`, "annotation 1: annotation_id, episode_id, kind"},
		"a secret":   {"annotations.jsonl", `{"annotation_id":"a","episode_id":"e","kind":"human","text":"ghp_` + strings.Repeat("a1B2", 9) + `","uses_gold":false,"annotator":"me","created_at":"2026-01-02T03:04:05Z"}`, "text still holds a secret (github_token)"},
	} {
		runDir := t.TempDir()
		staging := dir(t, runDir)
		put(t, staging, golden("run", 1)[0])
		mustWrite(t, filepath.Join(runDir, c.file), []byte(c.line+"\n"))
		dest := t.TempDir()
		_, err := publish.Publish(t.Context(), config(t, dir(t, dest), staging))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if files, _ := os.ReadDir(dest); len(files) != 0 {
			t.Errorf("%s: publish wrote %v", name, files)
		}
	}
}
