package arrowrec_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

var update = flag.Bool("update", false, "write the golden schemas of a new version, and docs/schema.md")

// versions are all that were ever published, the present one last.
var versions = []string{"1.0.0", "1.1.0", "1.2.0", schemas.SchemaVersion}

// describe is the contract of a table as text: one column per line.
func describe(t *arrowrec.Table) string {
	var b strings.Builder
	s := t.Schema(arrowrec.Meta{Producer: "golden"})
	fmt.Fprintf(&b, "# %s %s\n", t.Name, t.Version)
	for i, f := range s.Fields() {
		fmt.Fprintf(&b, "%s %s nullable=%t required=%t\n", f.Name, f.Type, f.Nullable, t.Columns[i].Required)
	}
	return b.String()
}

// columnsOf are the lines of a golden schema but for its title; nil if the
// table was not there yet.
func columnsOf(t *testing.T, table, version string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", table+"-"+version+".txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")[1:]
}

// changed says why a table is not the one that was published under its version,
// "" if it is. A golden file is written once and never again: a change needs a
// version of its own.
func changed(golden []string, t *arrowrec.Table) string {
	now := strings.Split(strings.TrimSpace(describe(t)), "\n")[1:]
	if diff := cmp.Diff(golden, now); diff != "" {
		return fmt.Sprintf("table %s is not what was published as %s: raise schemas.SchemaVersion, add the old one to versions, run with -update\n%s", t.Name, t.Version, diff)
	}
	return ""
}

func TestSchemasAreTheGoldenOnes(t *testing.T) {
	for _, table := range arrowrec.Tables {
		t.Run(table.Name, func(t *testing.T) {
			golden := columnsOf(t, table.Name, table.Version)
			if golden == nil && *update {
				if err := os.WriteFile(filepath.Join("testdata", table.Name+"-"+table.Version+".txt"), []byte(describe(table)), 0o644); err != nil {
					t.Fatal(err)
				}
				golden = columnsOf(t, table.Name, table.Version)
			}
			if problem := changed(golden, table); problem != "" {
				t.Error(problem)
			}
		})
	}
}

func TestAChangeWithoutAVersionFails(t *testing.T) {
	type before struct {
		A string `col:"a,required"`
		B *int32 `col:"b"`
	}
	golden := strings.Split(strings.TrimSpace(describe(arrowrec.NewTable[before]("t", "1"))), "\n")[1:]
	if got := changed(golden, arrowrec.NewTable[before]("t", "1")); got != "" {
		t.Errorf("nothing changed: %s", got)
	}
	type retyped struct {
		A string `col:"a,required"`
		B *int64 `col:"b"`
	}
	type reordered struct {
		B *int32 `col:"b"`
		A string `col:"a,required"`
	}
	type longer struct {
		A string `col:"a,required"`
		B *int32 `col:"b"`
		C *bool  `col:"c"`
	}
	type looser struct {
		A string `col:"a"`
		B *int32 `col:"b"`
	}
	for name, table := range map[string]*arrowrec.Table{
		"type": arrowrec.NewTable[retyped]("t", "1"), "order": arrowrec.NewTable[reordered]("t", "1"),
		"column": arrowrec.NewTable[longer]("t", "1"), "required": arrowrec.NewTable[looser]("t", "1"),
	} {
		if changed(golden, table) == "" {
			t.Errorf("a changed %s passes for the published schema", name)
		}
	}
}

// A minor version adds nullable columns at the end and changes nothing else, so
// that a reader of any version reads all later ones.
func TestVersionsOnlyAdd(t *testing.T) {
	if slices.Contains(versions[:len(versions)-1], schemas.SchemaVersion) {
		t.Fatalf("%s is there twice: take it off the list of older versions", schemas.SchemaVersion)
	}
	for _, table := range arrowrec.Tables {
		var old []string
		for _, version := range versions {
			now := columnsOf(t, table.Name, version)
			if len(now) < len(old) || !slices.Equal(old, now[:len(old)]) {
				t.Errorf("%s %s changes columns of the version before: that is a major version", table.Name, version)
				continue
			}
			for _, line := range now[len(old):] {
				if old != nil && !strings.HasSuffix(line, "nullable=true required=false") {
					t.Errorf("%s %s adds a required column: %s", table.Name, version, line)
				}
			}
			old = now
		}
	}
}

// arrowNames takes Arrow's names of types to those of the description.
var arrowNames = strings.NewReplacer("list<item: utf8, nullable>", "list<utf8>")

// The description, which documents, cards and croissant.json are made of, is
// held to the Arrow schema and to the versions that brought the columns.
func TestColumnsAreDescribed(t *testing.T) {
	if len(schemas.Documented) != len(arrowrec.Tables) {
		t.Fatalf("%d tables are described, %d are published", len(schemas.Documented), len(arrowrec.Tables))
	}
	for i, table := range arrowrec.Tables {
		said := schemas.Documented[i]
		if said.Name != table.Name || len(said.Columns) != len(table.Columns) {
			t.Fatalf("%s (%d columns) is described as %s (%d)", table.Name, len(table.Columns), said.Name, len(said.Columns))
		}
		fields := table.Schema(arrowrec.Meta{}).Fields()
		since := map[string]string{}
		for _, version := range slices.Backward(versions) {
			for _, line := range columnsOf(t, table.Name, version) {
				name, _, _ := strings.Cut(line, " ")
				since[name] = version
			}
		}
		for j, c := range said.Columns {
			if c.Name != fields[j].Name || c.Type != arrowNames.Replace(fields[j].Type.String()) || c.Required != table.Columns[j].Required {
				t.Errorf("%s.%s is described as %s %s required=%t", table.Name, fields[j].Name, c.Name, c.Type, c.Required)
			}
			if c.Since != since[c.Name] {
				t.Errorf("%s.%s is said to be there since %s, it came with %s", table.Name, c.Name, c.Since, since[c.Name])
			}
			if c.Meaning == "" || c.Source == "" || strings.ContainsAny(c.Meaning+c.Source+c.Unit, "\n|") {
				t.Errorf("%s.%s: meaning and source must be said, on one line, without bars", table.Name, c.Name)
			}
			if strings.HasPrefix(c.Name, "gold_") && c.Name != "gold_used" && c.Name != "gold_edit" && !strings.HasPrefix(c.Source, "privileged") {
				t.Errorf("%s.%s does not say that it is privileged", table.Name, c.Name)
			}
		}
	}
}

func TestDocumentOfTheSchemaIsFresh(t *testing.T) {
	const page = "../../docs/schema.md"
	var b strings.Builder
	fmt.Fprintf(&b, "# Tables and columns, schema %s\n\n", schemas.SchemaVersion)
	b.WriteString("<!-- Written by `go test ./schemas/arrowrec -update` from schemas/columns*.go. -->\n\n")
	b.WriteString("Every column is nullable in the files; those in bold are never null. Null means not known or not applicable, never zero or empty. " +
		"Times are UTC. Hashes are SHA-256 in hex, ids and keys of 32 characters the first half of one. A new column is a minor version, anything else a major one; readers ignore columns they do not know.\n")
	for _, table := range schemas.Documented {
		fmt.Fprintf(&b, "\n## %s\n\n%s Key: %s.\n\n%s", table.Name, table.About, table.Key, table.Markdown())
	}
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), b.String()); diff != "" {
		t.Errorf("docs/schema.md is stale: run with -update\n%s", diff)
	}
}

// Golden files of versions that nobody lists would be checked by nobody.
func TestEveryGoldenVersionIsListed(t *testing.T) {
	files, err := filepath.Glob("testdata/*-*.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, f := range files {
		_, version, _ := strings.Cut(strings.TrimSuffix(filepath.Base(f), ".txt"), "-")
		found[version] = true
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(versions)), slices.Sorted(maps.Keys(found))); diff != "" {
		t.Error(diff)
	}
}
