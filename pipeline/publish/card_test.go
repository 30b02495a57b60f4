package publish_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

func wellFormed(t *testing.T, name string, body []byte) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(string(body)))
	for {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%s: %v\n%s", name, err, body)
			return
		}
	}
}

func TestFiguresAreDrawn(t *testing.T) {
	tally := publish.NewTally()
	if len(tally.Plots()) != 0 {
		t.Error("there are figures without episodes")
	}
	for i := range 400 {
		outcome := []string{"resolved", `un<resolved> & "x"`, strings.Repeat("WM", 20), "bell\a"}[i%4]
		e := schemas.EpisodeRow{NTurns: int32(i), Outcome: &outcome}
		tally.Add(e, []schemas.StepRow{{ToolName: new("tool-" + string(rune('a'+i%24)))}})
	}
	plots := tally.Plots()
	var names []string
	for _, p := range plots {
		names = append(names, p.Name)
		wellFormed(t, p.Name, p.SVG)
		if n := strings.Count(string(p.SVG), "<rect") - 1; n < 1 || n > 16 {
			t.Errorf("%s has %d bars", p.Name, n)
		}
	}
	if strings.Join(names, " ") != "outcomes turns tools" {
		t.Errorf("figures: %v", names)
	}
	if outcomes := string(plots[0].SVG); strings.Count(outcomes, "textLength") != 1 { // only the label that is too wide
		t.Errorf("outcomes:\n%s", outcomes)
	}
	if turns := string(plots[1].SVG); !strings.Contains(turns, ">0 to 49<") || !strings.Contains(turns, ">350 to 399<") {
		t.Errorf("turns:\n%s", turns)
	}
	if !strings.Contains(string(plots[2].SVG), ">9 others<") {
		t.Errorf("tools:\n%s", plots[2].SVG)
	}
}

// idRef is a reference to another node in JSON-LD.
type idRef struct {
	ID string `json:"@id"`
}

// croissantFile has the fields of croissant.json that the test checks.
type croissantFile struct {
	Context      map[string]any `json:"@context"`
	Type         string         `json:"@type"`
	ConformsTo   string
	Name         string
	Description  string
	CiteAs       string `json:"citeAs"`
	License      []string
	Distribution []struct {
		Type           string `json:"@type"`
		ID             string `json:"@id"`
		ContentURL     string `json:"contentUrl"`
		EncodingFormat string
		SHA256         string
		Includes       string
	}
	RecordSet []struct {
		ID    string `json:"@id"`
		Key   []idRef
		Field []struct {
			ID       string `json:"@id"`
			DataType string
			Source   struct {
				FileSet idRef
				Extract struct{ Column string }
			}
		}
	}
}

// croissant.json follows its specification: IDs are unique, files exist with their hashes, and the
// sources of fields are columns of their tables.
func TestCroissantDescribesTheVersion(t *testing.T) {
	root := t.TempDir()
	rep := run(t, config(t, dir(t, root), stage(t, "run", 0, 3)))
	raw, err := os.ReadFile(filepath.Join(root, "croissant.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d croissantFile
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, []byte("vnd.apache")) || !bytes.Contains(raw, []byte(`"encodingFormat":"application/x-parquet"`)) {
		t.Error("mlcroissant reads Parquet files only with the type application/x-parquet")
	}
	if d.Type != "sc:Dataset" || d.ConformsTo != "http://mlcommons.org/croissant/1.0" || d.Name == "" || d.Description == "" || !strings.Contains(d.CiteAs, rep.Version) || len(d.License) != 1 || d.Context["cr"] == nil {
		t.Errorf("%.600s", raw)
	}
	ids := map[string]bool{}
	unique := func(id string) {
		if id == "" || ids[id] {
			t.Errorf("ID %q is empty or not unique", id)
		}
		ids[id] = true
	}
	for _, f := range d.Distribution {
		unique(f.ID)
		if f.Type == "cr:FileSet" {
			if found, _ := filepath.Glob(filepath.Join(root, f.Includes)); len(found) == 0 {
				t.Errorf("%s includes nothing", f.Includes)
			}
			continue
		}
		body, err := os.ReadFile(filepath.Join(root, f.ContentURL))
		if err != nil || schemas.HashBytes(body) != f.SHA256 || f.EncodingFormat == "" {
			t.Errorf("%s: %v, or its hash or format is wrong", f.ContentURL, err)
		}
	}
	tables := map[string]int{}
	for _, r := range d.RecordSet {
		unique(r.ID)
		tables[r.ID] = len(r.Field)
		for _, f := range r.Field {
			unique(f.ID)
			if !ids[f.Source.FileSet.ID] || f.DataType == "" || f.ID != r.ID+"/"+f.Source.Extract.Column {
				t.Errorf("field %+v", f)
			}
		}
		for _, k := range r.Key {
			if !ids[k.ID] {
				t.Errorf("key %s of %s is not a field", k.ID, r.ID)
			}
		}
	}
	for _, table := range []string{"episodes", "steps", "selection", "tool_sets"} {
		doc, _ := schemas.Table(table)
		if tables[table] != len(doc.Columns) {
			t.Errorf("%s: %d fields, %d columns (tables %v)", table, tables[table], len(doc.Columns), slices.Sorted(maps.Keys(tables)))
		}
	}
}

func TestCardShowsFiguresAndColumns(t *testing.T) {
	root := t.TempDir()
	run(t, config(t, dir(t, root), stage(t, "run", 0, 3)))
	raw, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	card := string(raw)
	figures := regexp.MustCompile(`!\[[^\]]+\]\(([^)]+)\)`).FindAllStringSubmatch(card, -1)
	if len(figures) < 3 {
		t.Errorf("%d figures", len(figures))
	}
	for _, f := range figures {
		body, err := os.ReadFile(filepath.Join(root, f[1]))
		if err != nil {
			t.Error(err)
		}
		wellFormed(t, f[1], body)
	}
	for _, want := range []string{
		"message_field_training: train", "`sft-negative-pi`", "use these rows only for training",
		"| `minhash_b64` | utf8 |", "load_dataset(", "pd.read_parquet(", "pl.scan_parquet(", "-- DuckDB", "<summary><b>steps</b>", "one for 0 of 3 episodes",
	} {
		if !strings.Contains(card, want) {
			t.Errorf("the card lacks %q", want)
		}
	}
	if strings.Contains(card, "dead_letters") {
		t.Error("the card describes a table that the version does not have")
	}
}

// cardOf publishes episodes and returns the card and the manifest of the version.
func cardOf(t *testing.T, change func(cfg *publish.Config), staged ...sinks.Staged) (string, schemas.Manifest) {
	t.Helper()
	staging, root := dir(t, t.TempDir()), t.TempDir()
	for _, e := range staged {
		put(t, staging, e)
	}
	cfg := config(t, dir(t, root), staging)
	if change != nil {
		change(&cfg)
	}
	run(t, cfg)
	card, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m schemas.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return string(card), m
}

func wantLines(t *testing.T, card string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(card, line) {
			t.Errorf("the card lacks %q", line)
		}
	}
}

// If the selection filters by columns that are computed from the reference fix, the card names them.
func TestCardNamesGoldColumnsOfTheSelection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	text := "name: mine\npredicates: [gold_evidence_differs, 'gold_line_recall > 0.5 || !gold_used', has_patch]\nreport: [gold_root_hit]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	recipe, err := selection.LoadRecipe(file)
	if err != nil {
		t.Fatal(err)
	}
	card, _ := cardOf(t, func(cfg *publish.Config) { cfg.Selection = recipe }, golden("run", 1)...)
	wantLines(t, card, "computed from the reference fix: `gold_evidence_differs`, `gold_line_recall`. No agent")
	card, _ = cardOf(t, nil, golden("run", 1)...)
	if strings.Contains(card, "columns that are computed from the reference fix: ") {
		t.Error("the card names columns that the default selection does not use")
	}
}

// The card names a license only if every episode has one, does not count verdicts that an imported file
// only claims, and says how many episodes did not report a cost.
func TestCardClaimsOnlyWhatHoldsForAllData(t *testing.T) {
	all := golden("run", 4)
	for i := range all {
		all[i].Episode.LicenseSPDX, all[i].Episode.VerifyMethod = new("MIT"), new("pytest")
	}
	card, _ := cardOf(t, nil, all...)
	wantLines(t, card, "\nlicense: mit\n", "| pytest | 0 | 4 | 0 | 0 |", "source_datasets:\n- ")

	all[1].Episode.LicenseSPDX = new("Apache-2.0")
	card, _ = cardOf(t, nil, all...)
	wantLines(t, card, "\nlicense: [mit, apache-2.0]\n")

	e := &all[2].Episode
	e.LicenseSPDX, e.Resolved, e.VerifyStatus, e.VerifyMethod, e.CostUSD, e.Harness = nil, nil, "not_run", new("debug-gym.success"), nil, "debug-gym"
	e.ContentSHA256 = all[0].Episode.ContentSHA256
	all[3].Episode.LicenseSPDX, all[3].Episode.Model = new("GPL-3.0-or-later"), "m"
	all[0].Episode.CostUSD, all[1].Episode.CostUSD, all[3].Episode.CostUSD = new(0.5), new(0.25), new(0.25)
	card, m := cardOf(t, func(cfg *publish.Config) { cfg.Imported = "debug-gym" }, all...)
	wantLines(t, card,
		"\nlicense: other\n", "| pytest | 0 | 3 | 0 | 0 |", "| debug-gym.success | 0 | 0 | 0 | 1 |", "such claims are not verified", "debug-gym: 1",
		"| cost | 1.00 USD, of the 3 episodes that report one |", "| m | 0 | 1 | 0 | 0 |", "equal those of an\nearlier episode (`content_sha256`): 1.",
		"tracesmith import debug-gym FILE... -o DATASET", "Use the files that `config_json` names", "@misc{tracesmith-"+m.Version,
	)
	for _, spdx := range []string{"LicenseRef-own", "Python-2.0"} { // the Hub has no names for these
		all[2].Episode.LicenseSPDX = &spdx
		card, _ = cardOf(t, nil, all...)
		wantLines(t, card, "\nlicense: other\n")
	}
	for i := range all {
		all[i].Episode.LicenseSPDX = nil
	}
	card, _ = cardOf(t, nil, all...)
	wantLines(t, card, "\nlicense: unknown\n")
}

// The card also lists predicates that are counted but do not filter. The command that makes the version again
// names a built-in selection, or has a placeholder if the recipe is the user's own, which the card identifies.
func TestCardSaysHowToReproduce(t *testing.T) {
	all := golden("run", 3)
	card, m := cardOf(t, func(cfg *publish.Config) { cfg.Name = "it's" }, all...)
	wantLines(t, card,
		"| tests_hidden | `test_visibility == \"hidden\"` | ", "| near | `MinHash", "--name 'it'\\''s' --selection success-v1\n", "Use the run directories of `run`:",
	)
	if strings.Contains(card, "RECIPE") || m.Selection.Expr == "" || m.Split == nil || m.Split.Salt == "" || len(m.Split.Ratios) != 3 {
		t.Errorf("%+v\n%+v", m.Split, m.Selection)
	}
	file := filepath.Join(t.TempDir(), "success-v1.yaml")
	mustWrite(t, file, []byte("name: success-v1\npredicates: [acted]\nnear: 0.9\n")) // another selection with the name of a built-in one
	own, err := selection.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	card, m = cardOf(t, func(cfg *publish.Config) { cfg.Selection = own }, all...)
	wantLines(t, card, "--selection RECIPE\n", "RECIPE is the selection `success-v1` with the SHA-256 "+m.Selection.SHA256, "The selection keeps one of several near duplicates")

	moved := golden("run", 3)
	for i := range moved {
		moved[i].Episode.Split = "validation"
		for k := range moved[i].Steps {
			moved[i].Steps[k].Split = "validation"
		}
	}
	card, m = cardOf(t, nil, moved...)
	if m.Split.Exceptions != 3 {
		t.Errorf("%d episodes are not in the split that the hash of their repository gives, want 3", m.Split.Exceptions)
	}
	wantLines(t, card, "Episodes with another split: 3.")
}

func TestSecretInCardIsAnError(t *testing.T) {
	cfg := config(t, dir(t, t.TempDir()), stage(t, "run", 0, 1))
	cfg.Name = "ghp_" + strings.Repeat("a1B2", 9)
	_, err := publish.Publish(t.Context(), cfg)
	if found, ok := errors.AsType[*redact.Found](err); !ok || found.Object != "README.md" {
		t.Errorf("%v, want a redact.Found error for README.md", err)
	}
}
