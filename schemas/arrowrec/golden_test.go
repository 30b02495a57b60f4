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

var update = flag.Bool("update", false, "write the golden schemas of a new version")

// versions lists all published schema versions, the current one last.
var versions = []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "2.0.0", "2.1.0", "2.2.0", schemas.SchemaVersion}

// describe returns the schema of a table as text, one column per line.
func describe(t *arrowrec.Table) string {
	var b strings.Builder
	s := t.Schema(arrowrec.Meta{Producer: "golden"})
	fmt.Fprintf(&b, "# %s %s\n", t.Name, t.Version)
	for i, f := range s.Fields() {
		fmt.Fprintf(&b, "%s %s nullable=%t required=%t\n", f.Name, f.Type, f.Nullable, t.Columns[i].Required)
	}
	return b.String()
}

// goldenFile returns the path of the schema of a table in one version.
func goldenFile(table, version string) string {
	return filepath.Join("testdata", table+"-"+version+".txt")
}

// columnsOf returns the lines of a golden schema without its title, or nil if the
// version does not have the table.
func columnsOf(t *testing.T, table, version string) []string {
	t.Helper()
	raw, err := os.ReadFile(goldenFile(table, version))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")[1:]
}

// compareSchema describes how a table differs from the golden schema of its version; ""
// means that it does not. If appended, it only has additional nullable columns,
// which -update may add to the golden file. Any other difference requires a new
// major version.
func compareSchema(golden []string, t *arrowrec.Table) (problem string, appended bool) {
	current := strings.Split(strings.TrimSpace(describe(t)), "\n")[1:]
	diff := cmp.Diff(golden, current)
	if diff == "" {
		return "", false
	}
	appended = len(current) > len(golden) && slices.Equal(golden, current[:len(golden)])
	for _, line := range current[min(len(golden), len(current)):] {
		appended = appended && strings.HasSuffix(line, nullable)
	}
	if appended {
		return fmt.Sprintf("table %s has columns that %s lacks: run with -update\n%s", t.Name, t.Version, diff), true
	}
	return fmt.Sprintf("table %s changes columns of %s, which requires a new major version: add nullable columns at the end instead\n%s",
		t.Name, t.Version, diff), false
}

// nullable is the end of a golden line whose column may be added within a major version.
const nullable = "nullable=true required=false"

func TestSchemasMatchGoldenFiles(t *testing.T) {
	for _, table := range arrowrec.Tables {
		t.Run(table.Name, func(t *testing.T) {
			golden := columnsOf(t, table.Name, table.Version)
			problem, appended := compareSchema(golden, table)
			if *update && (golden == nil || appended) {
				if err := os.WriteFile(goldenFile(table.Name, table.Version), []byte(describe(table)), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if problem != "" {
				t.Error(problem)
			}
		})
	}
}

func TestOnlyNullableColumnsAreAddedToAVersion(t *testing.T) {
	type before struct {
		A string `col:"a,required"`
		B *int32 `col:"b"`
	}
	golden := strings.Split(strings.TrimSpace(describe(arrowrec.NewTable[before]("t", "1"))), "\n")[1:]
	if got, _ := compareSchema(golden, arrowrec.NewTable[before]("t", "1")); got != "" {
		t.Errorf("nothing changed: %s", got)
	}
	type longer struct {
		A string `col:"a,required"`
		B *int32 `col:"b"`
		C *bool  `col:"c"`
	}
	type demanding struct {
		A string `col:"a,required"`
		B *int32 `col:"b"`
		C bool   `col:"c,required"`
	}
	type shorter struct {
		A string `col:"a,required"`
	}
	type retyped struct {
		A string `col:"a,required"`
		B *int64 `col:"b"`
	}
	type reordered struct {
		B *int32 `col:"b"`
		A string `col:"a,required"`
	}
	type between struct {
		A string `col:"a,required"`
		C *bool  `col:"c"`
		B *int32 `col:"b"`
	}
	type looser struct {
		A string `col:"a"`
		B *int32 `col:"b"`
	}
	for name, c := range map[string]struct {
		table    *arrowrec.Table
		appended bool
	}{
		"a nullable column": {arrowrec.NewTable[longer]("t", "1"), true},
		"a required column": {arrowrec.NewTable[demanding]("t", "1"), false},
		"a removed column":  {arrowrec.NewTable[shorter]("t", "1"), false},
		"another type":      {arrowrec.NewTable[retyped]("t", "1"), false},
		"another order":     {arrowrec.NewTable[reordered]("t", "1"), false},
		"a column between":  {arrowrec.NewTable[between]("t", "1"), false},
		"a loosened column": {arrowrec.NewTable[looser]("t", "1"), false},
	} {
		if problem, appended := compareSchema(golden, c.table); problem == "" || appended != c.appended {
			t.Errorf("%s: problem %q, appended %t", name, problem, appended)
		}
	}
}

// Within a major version, only nullable columns are added, at the end, so that
// readers of any version can read all later ones.
func TestVersionsOnlyAdd(t *testing.T) {
	if slices.Contains(versions[:len(versions)-1], schemas.SchemaVersion) {
		t.Fatalf("%s is listed twice: remove it from the older versions", schemas.SchemaVersion)
	}
	for _, table := range arrowrec.Tables {
		var old []string
		for i, version := range versions {
			current := columnsOf(t, table.Name, version)
			if i > 0 && schemas.Major(version) != schemas.Major(versions[i-1]) {
				old = nil
			}
			if len(current) < len(old) || !slices.Equal(old, current[:len(old)]) {
				t.Errorf("%s %s changes columns of the previous version, which requires a new major version", table.Name, version)
				continue
			}
			for _, line := range current[len(old):] {
				if old != nil && !strings.HasSuffix(line, nullable) {
					t.Errorf("%s %s adds a required column: %s", table.Name, version, line)
				}
			}
			old = current
		}
	}
}

// Records of schema 1.x are published with the columns of its last version: with
// those that 2.0.0 removed and without those that were added later.
func TestTablesOfTheFirstMajorVersion(t *testing.T) {
	for _, table := range arrowrec.Tables {
		for _, version := range []string{"1.0.0", schemas.LastV1} {
			old := table.At(version)
			if diff := cmp.Diff(columnsOf(t, table.Name, schemas.LastV1), strings.Split(strings.TrimSpace(describe(old)), "\n")[1:]); diff != "" || old.Version != schemas.LastV1 {
				t.Errorf("%s of version %s is written as %s: %s", table.Name, version, old.Version, diff)
			}
		}
		if table.At("2.7.0") != table {
			t.Errorf("%s of the current major version is not the table itself", table.Name)
		}
	}
}

// arrowNames translates Arrow's type names to those of schemas.Column.
var arrowNames = strings.NewReplacer("list<item: utf8, nullable>", "list<utf8>")

// The descriptions match the Arrow schema and the versions that added the columns.
func TestColumnsAreDescribed(t *testing.T) {
	if len(schemas.TableDocs) != len(arrowrec.Tables) {
		t.Fatalf("%d tables are described, %d are published", len(schemas.TableDocs), len(arrowrec.Tables))
	}
	for i, table := range arrowrec.Tables {
		doc := schemas.TableDocs[i]
		if doc.Name != table.Name || len(doc.Columns) != len(table.Columns) {
			t.Fatalf("%s (%d columns) is described as %s (%d)", table.Name, len(table.Columns), doc.Name, len(doc.Columns))
		}
		fields := table.Schema(arrowrec.Meta{}).Fields()
		since := map[string]string{} // the oldest version with the column, across major versions
		for _, version := range slices.Backward(versions) {
			for _, line := range columnsOf(t, table.Name, version) {
				name, _, _ := strings.Cut(line, " ")
				since[name] = version
			}
		}
		for j, c := range doc.Columns {
			if c.Name != fields[j].Name || c.Type != arrowNames.Replace(fields[j].Type.String()) || c.Required != table.Columns[j].Required {
				t.Errorf("%s.%s is described as %s %s required=%t", table.Name, fields[j].Name, c.Name, c.Type, c.Required)
			}
			if c.Since != since[c.Name] {
				t.Errorf("%s.%s is described as added in %s, but was added in %s", table.Name, c.Name, c.Since, since[c.Name])
			}
			if c.Meaning == "" || c.Source == "" || strings.ContainsAny(c.Meaning+c.Source+c.Unit, "\n|") {
				t.Errorf("%s.%s needs a meaning and a source, each on one line without |", table.Name, c.Name)
			}
			if strings.HasPrefix(c.Name, "gold_") && c.Name != "gold_used" && c.Name != "gold_edit" && !strings.HasPrefix(c.Source, "privileged") {
				t.Errorf("%s.%s does not say that it is privileged", table.Name, c.Name)
			}
		}
	}
}

// No test would check the golden files of a version that is not listed.
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
